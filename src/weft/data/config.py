"""Data configuration of a task, and the presets."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from weft.data.empty import OnEmpty
from weft.data.layout import Layout, Quoting
from weft.data.masking import MaskKind
from weft.foundation.config import Config
from weft.foundation.shipped import shipped_folder


def _column(value: Any) -> Any:
    """Convert a column number to a column name."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _label_columns(value: Any) -> Any:
    if isinstance(value, list | tuple):
        names = tuple(map(_column, value))
        if not names:  # a kind without labels
            return names
        if len(names) < 2 or len(set(map(str, names))) < len(names) or not all(isinstance(n, str) for n in names):
            raise ValueError(f"found {list(value)!r}, expected the names of at least two columns, each once")
        return names
    if not isinstance(_column(value), str):
        raise ValueError(f"found {value!r}, expected the name of a column, or a list of names for a multilabel task")
    return _column(value)


def _columns(value: Any) -> Any:
    """Convert one column name to a list of names."""
    return tuple(map(_column, value)) if isinstance(value, list | tuple) else (_column(value),)


ColumnName = Annotated[str, BeforeValidator(_column)]
ColumnNames = Annotated[tuple[str, ...], BeforeValidator(_columns)]
LabelColumns = Annotated[str | tuple[str, ...], BeforeValidator(_label_columns)]


class DataConfig(Config):
    """Files of one task and the columns to read from them."""

    train: str | None = None
    """Train file, relative to the recipe: csv, tsv, jsonl or parquet, optionally gzipped."""
    dev: str | None = None
    """Dev file, on which scores are measured."""
    test: str | None = None
    """Test file, used only by `weft evaluate --split test`."""
    unlabelled: str | None = None
    """File of further train texts without labels, with the same text columns. Teachers (`distill`) predict them, and
    only these predictions are trained on. Without `train`, they are all that the task is trained on."""
    dev_fraction: float | None = Field(default=None, gt=0, lt=1)
    """Fraction of the train file to hold out instead of `dev`. Rows with equal texts stay in one split. Without
    `train`: the fraction of the dev file to score, which are the rows that it would hold out."""
    dev_seed: int | None = Field(default=None, ge=0)
    """Seed that decides which rows `dev_fraction` holds out. Defaults to the seed of the run. A study needs it, because
    it compares all runs on the same rows."""
    text: ColumnName = "text"
    """Column of the text, or of the first text of a pair."""
    text2: ColumnName | None = None
    """Column of the second text. Required by the readings bi, cross and concat."""
    label: LabelColumns = "label"
    """Column of the label. For a multilabel task: a column of JSON lists or of labels separated by , ; or |, or a list
    of columns of 0 and 1, one per label. An empty list, the default of matches, if rows have no label."""
    negative: ColumnNames = ()
    """Column of a hard negative, or a list of columns, for matches: texts that do not match the first text. Read from
    the train file only."""
    label_map: dict[str, str] | None = None
    """New names for labels: `{ "1" = "bad", "2" = "bad", "3" = "good" }`"""
    mask: tuple[MaskKind, ...] = ()
    """Personal data to mask in all texts before anything else reads them: email, phone, number, link."""
    on_bad_rows: Literal["stop", "skip"] = "stop"
    """Handling of rows with an unusable text or label. Skipped rows are counted and reported."""
    on_blank: Literal["skip", "error"] | None = None
    """Handling of rows with a blank label cell: skip (the task does not ask about the row) or error. Defaults to skip.
    In a multilabel task with one column, a blank cell means that no label applies; with `on_blank`, only `[]` does."""
    quoting: Quoting = "auto"
    """csv and tsv: "csv" if quotes enclose fields, "none" if quotes are part of the texts. Defaults to "auto": detected
    on the whole file, with the other rule for rows that only it can read."""
    header: bool = True
    """csv and tsv: whether the first line contains the column names."""
    columns: tuple[str, ...] = ()
    """Column names of files without a header. Defaults to their numbers: "1", "2", ..."""
    encoding: str = "utf-8"
    """Text encoding of the files, such as "cp1252"."""
    doubts: tuple[str, ...] = ()
    """Guesses of `weft init` to confirm. `weft check` and `weft train` repeat them until you delete them."""
    on_empty: OnEmpty | None = None
    """Handling of rows with an empty text, in training and prediction: error, skip (ignored and counted) or keep (read
    as a text without words). Defaults to error, or to skip if `on_bad_rows` is skip."""
    hub: str | None = None
    """Data set of the Hugging Face hub, such as "nyu-mll/glue:qqp". `train`, `dev` and `test` then name its splits."""
    given: tuple[Literal["train", "dev", "test", "unlabelled"], ...] | None = None
    """Set by weft: the splits whose rows were given in Python, by `weft.train(..., data=...)`, or made by
    `weft add`."""
    preset: str | None = None
    """Set by weft: the preset whose files are searched in --data-dir."""

    @field_validator("encoding")
    @classmethod
    def _known_encoding(cls, name: str) -> str:
        try:
            " ".encode(name)
        except (LookupError, ValueError):
            raise ValueError(f"{name!r} is not a text encoding; expected utf-8, cp1252, latin-1, utf-16, ...") from None
        return name

    @model_validator(mode="after")
    def _names_without_header(self) -> "DataConfig":
        if self.columns and self.header:
            raise ValueError("`columns` names the columns of a file without a header; say `header = false` too")
        if len(set(self.columns)) < len(self.columns):
            raise ValueError(f"`columns` is {list(self.columns)}; expected every name once")
        return self

    @model_validator(mode="after")
    def _rules_need_labels(self) -> "DataConfig":
        for key in ("label_map", "on_blank", "unlabelled"):
            if getattr(self, key) and not self.label:
                raise ValueError(f"`{key}` is about labels, but there is no label column; leave it out")
        return self

    @property
    def layout(self) -> Layout:
        """Layout of the files."""
        return Layout(self.quoting, self.encoding, self.header, self.columns)

    def without_files(self) -> "DataConfig":
        """Return a copy with the columns and rules only, without the files, their layout and their location."""
        files = {
            "train",
            "dev",
            "test",
            "unlabelled",
            "hub",
            "preset",
            "given",
            "quoting",
            "header",
            "columns",
            "encoding",
        }
        return DataConfig.model_validate(self.model_dump(exclude=files))

    @property
    def label_columns(self) -> tuple[str, ...]:
        return (self.label,) if isinstance(self.label, str) else self.label

    @property
    def empty_rule(self) -> OnEmpty:
        """Handling of rows with an empty text."""
        return self.on_empty or ("skip" if self.on_bad_rows == "skip" else "error")

    @model_validator(mode="after")
    def _one_dev(self) -> "DataConfig":
        if self.train is not None and self.dev is not None and self.dev_fraction is not None:
            raise ValueError("`dev` and `dev_fraction` exclude each other; keep one")
        if self.dev_seed is not None and self.dev_fraction is None:
            raise ValueError("`dev_seed` decides which rows `dev_fraction` holds out; set that too, or remove it")
        return self

    def split_seed(self, seed: int) -> int:
        """Return the seed of the held-out rows of a run with this seed."""
        return seed if self.dev_seed is None else self.dev_seed


def _cs224n(name: str, stem: str, **columns: str) -> DataConfig:
    """Return a preset for the files of Stanford's CS224N default final project."""
    files = {split: f"{stem}-{split}.csv" for split in ("train", "dev", "test")}
    return DataConfig.model_validate({"preset": name, **files, **columns})


def _starter(task: str, **columns: str) -> DataConfig:
    """Return a preset for one of the small data sets included in weft."""
    files = {split: str(shipped_folder("starter") / f"{task}-{split}.tsv") for split in ("train", "dev")}
    return DataConfig.model_validate(files | columns)


def _hub(name: str, **columns: str) -> DataConfig:
    splits = {"train": "train", "dev": "validation", "test": "test"}
    return DataConfig.model_validate({"hub": name, **splits, **columns})


_PAIR = {"text": "sentence1", "text2": "sentence2"}
PRESETS: dict[str, DataConfig] = {
    "sst5": _cs224n("sst5", "ids-sst", text="sentence", label="sentiment"),
    "quora": _cs224n("quora", "quora", **_PAIR, label="is_duplicate"),
    "stsb": _cs224n("stsb", "sts", **_PAIR, label="similarity"),
    "cfimdb": _cs224n("cfimdb", "ids-cfimdb", text="sentence", label="sentiment"),
    # phrases of two or more words in the trees of SST's train sentences: no dev file, so some are held out
    "sst-phrases": DataConfig(
        preset="sst-phrases",
        train="more/sst-phrases-train.tsv",
        dev_fraction=0.02,
        text="phrase",
        label="sentiment",
    ),
    "starter/sentiment": _starter("sentiment"),
    "starter/paraphrase": _starter("paraphrase", text2="text2"),
    "starter/similarity": _starter("similarity", text2="text2"),
    "hub/sst5": _hub("SetFit/sst5"),
    "hub/qqp": _hub("nyu-mll/glue:qqp", text="question1", text2="question2"),
    "hub/stsb": _hub("nyu-mll/glue:stsb", **_PAIR),
    # yelp_polarity has no validation split: the reports evaluate on its test rows
    "yelp": DataConfig(hub="fancyzhx/yelp_polarity", train="train", dev="test", test="test"),
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
