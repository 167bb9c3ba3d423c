from pathlib import Path

import pytest
from pydantic import ValidationError

from weft.data.config import PRESETS, DataConfig
from weft.data.task_files import locate


def test_columns_by_number() -> None:
    config = DataConfig.model_validate({"header": False, "text": 2, "text2": 4, "label": [1, "3"]})
    assert (config.text, config.text2, config.label) == ("2", "4", ("1", "3"))
    assert config.label_columns == ("1", "3")
    assert DataConfig(label="stars").label_columns == ("stars",)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "cp1252", "utf-16", "shift_jis"])
def test_encodings(encoding: str) -> None:
    assert DataConfig(encoding=encoding).layout.encoding == encoding


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"encoding": "latin-9000"}, "is not a text encoding"),
        ({"encoding": "hex"}, "is not a text encoding"),
        ({"label": ["a", "a"]}, "at least two columns, each once"),
        ({"label": [["a"], "b"]}, "at least two columns, each once"),
        ({"label": True}, "expected the name of a column"),
        ({"columns": ["a"]}, "say `header = false` too"),
    ],
)
def test_what_is_rejected(content: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        DataConfig.model_validate(content)


def test_a_preset_may_name_a_file_in_a_folder_of_the_data() -> None:
    """Also in a resolved recipe, whose paths are those of another machine."""
    data = PRESETS["sst-phrases"]
    resolved = data.model_copy(update={"train": "/elsewhere/more/sst-phrases-train.tsv"})
    for config in (data, resolved):
        assert locate(config, "train", "t", Path(), Path("d")) == Path("d/more/sst-phrases-train.tsv")
    assert locate(resolved, "train", "t", Path(), None) == Path("/elsewhere/more/sst-phrases-train.tsv")
