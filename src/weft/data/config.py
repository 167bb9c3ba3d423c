"""Which files feed a task, and the layouts that are known by name."""

from typing import Annotated, Any

from pydantic import BeforeValidator

from weft.variants import Config


class DataConfig(Config):
    """Files of one task and the columns that matter in them."""

    train: str | None = None
    """file with the examples to train on; relative to the recipe, or to --data-dir for a preset"""
    dev: str | None = None
    """file with the examples that scores are measured on"""
    test: str | None = None
    """file for a last look, used only by `weft evaluate --split test`"""
    text: str = "text"
    """column of the text, or of the first text of a pair"""
    text2: str | None = None
    """column of the second text; needed by the readings bi, cross and concat"""
    label: str = "label"
    """column of the label"""
    preset: str | None = None
    """set by weft when the files come from a preset: they are then looked for in --data-dir"""


# The layout of Stanford's CS224N default final project, which thousands of people have on disk.
PRESETS: dict[str, DataConfig] = {
    "sst5": DataConfig(
        preset="sst5",
        train="ids-sst-train.csv",
        dev="ids-sst-dev.csv",
        test="ids-sst-test.csv",
        text="sentence",
        label="sentiment",
    ),
    "quora": DataConfig(
        preset="quora",
        train="quora-train.csv",
        dev="quora-dev.csv",
        test="quora-test.csv",
        text="sentence1",
        text2="sentence2",
        label="is_duplicate",
    ),
    "stsb": DataConfig(
        preset="stsb",
        train="sts-train.csv",
        dev="sts-dev.csv",
        test="sts-test.csv",
        text="sentence1",
        text2="sentence2",
        label="similarity",
    ),
    "cfimdb": DataConfig(
        preset="cfimdb",
        train="ids-cfimdb-train.csv",
        dev="ids-cfimdb-dev.csv",
        test="ids-cfimdb-test.csv",
        text="sentence",
        label="sentiment",
    ),
}


def _preset(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value not in PRESETS:
        known = ", ".join(PRESETS)
        raise ValueError(f"{value!r} is not a preset; expected one of {known}, or a table with `train` and `dev`")
    return PRESETS[value]


DataField = Annotated[DataConfig, BeforeValidator(_preset)]
"""A preset's name, or a table of files and columns."""
