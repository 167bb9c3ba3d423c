"""Tables that users hand over in Python, read as files are."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.tiny import write_rows
from weft.data.frames import Frame, frame_of, frames_of
from weft.data.tokenizer import Tokenizer
from weft.data.tokens import cache_folder, tokenize_file
from weft.foundation.errors import UserError

COLUMNS: dict[str, list[Any]] = {
    "text": ["a cat", 'a "dog"', "naïve\nheron"],
    "label": [1, 0, None],
    "tags": [["x", "y"], [], ["y"]],
    "on": [True, False, True],
}
EXPECTED = [
    {"text": "a cat", "label": "1", "tags": '["x", "y"]', "on": "true"},
    {"text": 'a "dog"', "label": "0", "tags": "[]", "on": "false"},
    {"text": "naïve\nheron", "label": "", "tags": '["y"]', "on": "true"},
]


def as_dataset(columns: dict[str, list[Any]]) -> Any:
    datasets = pytest.importorskip("datasets")
    return datasets.Dataset.from_dict(columns)


def as_polars(columns: dict[str, list[Any]]) -> Any:
    return pytest.importorskip("polars").DataFrame(columns)


TABLES: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "pandas": lambda columns: pd.DataFrame({**columns, "label": pd.array(columns["label"], dtype="Int64")}),
    "pandas with an index of its own": lambda columns: pd.DataFrame(
        {**columns, "label": pd.array(columns["label"], dtype="Int64")}, index=[9, 9, 4]
    ),
    "polars": as_polars,
    "Arrow": pa.table,
    "an Arrow batch": lambda columns: pa.record_batch(columns),
    "datasets": as_dataset,
    "columns": dict,
    "arrays": lambda columns: {k: np.array(v, dtype=object) if k != "tags" else v for k, v in columns.items()},
    "rows": lambda columns: [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
}


@pytest.mark.parametrize("made", TABLES.values(), ids=TABLES)
def test_cells_are_read_as_a_file_has_them(made: Callable[[dict[str, list[Any]]], Any]) -> None:
    frame = frame_of(made(COLUMNS), "stars.train")
    assert list(frame.rows()) == EXPECTED
    assert frame.digest() == frame_of(COLUMNS, "another.name").digest()


def test_arrays_in_cells_and_columns_by_number() -> None:
    frame = frame_of(pd.DataFrame({0: ["a"], 1: [np.array(["x", "y"])], 2: [np.float32(0.5)]}), "t")
    assert list(frame.rows()) == [{"0": "a", "1": '["x", "y"]', "2": "0.5"}]


def test_the_digest_follows_what_the_task_reads() -> None:
    frame = frame_of(pd.DataFrame(COLUMNS), "t")
    more = frame_of(pd.DataFrame({**COLUMNS, "prediction": [1, 2, 3]}), "t")
    assert frame.digest() != more.digest()
    assert frame.only(["text", "on"]).digest() == more.only(["text", "on"]).digest()
    other = frame_of(pd.DataFrame({**COLUMNS, "on": [True, True, True]}), "t")
    assert frame.only(["text", "on"]).digest() != other.only(["text", "on"]).digest()
    moved = frame_of({"a": ["x", "yz"]}, "t"), frame_of({"a": ["xy", "z"]}, "t")
    assert moved[0].digest() != moved[1].digest()


WRONG: dict[str, tuple[Any, str]] = {
    "a path": ("train.csv", "stars.train: found a str, expected a data frame"),
    "a number": (5, "stars.train: found an int, expected a data frame"),
    "texts": (["a", "b"], "stars.train: found a list, expected a data frame"),
    "no rows": ([], "stars.train: found a list, expected a data frame"),
    "rows that differ": ([{"text": "a"}, {"word": "b"}], "row 1 of stars.train: has the key 'word', which the first"),
    "two columns of a name": (
        pd.DataFrame([["a", "b"]], columns=["text", "text"]),
        "stars.train: two columns are called 'text'",
    ),
}


@pytest.mark.parametrize(("given", "message"), WRONG.values(), ids=WRONG)
def test_what_is_not_a_table_is_said(given: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        frame_of(given, "stars.train")


def test_columns_that_cannot_be_read() -> None:
    for columns, message in (
        ({"text": ["a"], "label": [1, 2]}, "t: its columns have different lengths"),
        ({"text": "abc"}, "t: column 'text' is a str, expected a list of its values"),
        ({"text": (text for text in ["a"])}, "t: column 'text' is a generator, expected a list"),
    ):
        with pytest.raises(UserError, match=message):
            list(frame_of(columns, "t").rows())


def test_splits_of_tasks() -> None:
    table = {"text": ["a"], "label": ["x"]}
    frames = frames_of({"stars": {"train": table, "dev": table}})
    assert [str(frame) for frame in frames["stars"].values()] == ["stars.train", "stars.dev"]
    for data, message in (
        ({"stars": pd.DataFrame(table)}, r"data\['stars'\]: found a DataFrame, expected its splits: data=\{'stars'"),
        ({"stars": table}, r"data\['stars'\]: found the key 'text', expected train, dev or test"),
        ({"stars": {"validation": table}}, r"found the key 'validation', expected train, dev or test; call it 'dev'"),
        ([table], r"data: found a list, expected a dictionary such as \{'TASK'"),
    ):
        with pytest.raises(UserError, match=message):
            frames_of(data)  # type: ignore[arg-type]


def test_a_data_set_with_splits_is_not_one_table() -> None:
    datasets = pytest.importorskip("datasets")
    both = datasets.DatasetDict({"train": as_dataset(COLUMNS), "test": as_dataset(COLUMNS)})
    with pytest.raises(UserError, match="t: found a DatasetDict with the splits train, test; give one of them"):
        frame_of(both, "t")


def test_a_table_is_tokenized_like_its_file(tiny: Path, tmp_path: Path) -> None:
    tokenizer = Tokenizer.load(tiny / "body")
    rows = [{"text": "a cat", "label": "1"}, {"text": "the dog", "label": "0"}]
    file = tokenize_file(write_rows(tmp_path / "a.tsv", rows), ["text"], tokenizer)
    table = tokenize_file(frame_of(rows, "t"), ["text"], tokenizer)
    assert table.ids("text", 1).tolist() == file.ids("text", 1).tolist()
    assert table.strings("label").to_pylist() == file.strings("label").to_pylist()
    cached = cache_folder() / f"{table.key}.arrow"
    before = cached.stat().st_mtime_ns
    assert cached.stat().st_mode & 0o777 == 0o600
    assert tokenize_file(frame_of(pd.DataFrame(rows), "other"), ["text"], tokenizer).key == table.key
    assert cached.stat().st_mtime_ns == before, "it was built again"


def test_rows_that_cannot_be_used_are_named_as_python_counts(tiny: Path) -> None:
    tokenizer = Tokenizer.load(tiny / "body")
    rows = [{"text": "a cat"}] * 20
    for bad, message in (
        (None, "row 17 of stars.train: column 'text' is empty, expected a text"),
        ("a\0b", "row 17 of stars.train: column 'text' holds a NUL byte"),
        ("half \ud83d", "row 17 of stars.train: column 'text' holds half a character"),
    ):
        frame: Frame = frame_of([*rows[:17], {"text": bad}, *rows[18:]], "stars.train")
        with pytest.raises(UserError, match=message):
            tokenize_file(frame, ["text"], tokenizer)
    with pytest.raises(UserError, match=r"^t: has no rows$"):
        tokenize_file(frame_of({"text": []}, "t"), ["text"], tokenizer)
    with pytest.raises(UserError, match=r"^t: there is no column 'review'; the columns are 'text'$"):
        tokenize_file(frame_of(rows, "t"), ["review"], tokenizer)
