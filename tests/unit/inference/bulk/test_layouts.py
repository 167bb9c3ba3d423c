"""Files to answer for, in the layout of the training files or in another."""

from pathlib import Path

import pytest

from weft.data.layout import PLAIN, Layout
from weft.data.tables import reading_note
from weft.foundation.errors import UserError
from weft.inference.bulk.texts import BulkTexts, Wish

HEADERLESS = Layout(header=False, columns=("text", "label"), encoding="cp1252")


def texts(path: Path, content: str, layout: Layout, *own: str, encoding: str = "utf-8") -> list[tuple[str, ...]]:
    path.write_bytes(content.encode(encoding))
    wishes = {"task": Wish(list(own or ("text",)), "error", layout)}
    return [row for block in BulkTexts(path, wishes).blocks(100) for row in zip(*block.sides["task"], strict=True)]


def test_a_model_of_files_without_a_header_reads_both_kinds(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    assert texts(path, "calm sea\tgood\nwind\tbad\n", HEADERLESS) == [("calm sea",), ("wind",)]
    assert texts(path, "id\ttext\n1\tcalm sea\n2\twind\n", HEADERLESS) == [("calm sea",), ("wind",)]
    assert texts(path, "sea\tsea\nwind\tbad\n", HEADERLESS) == [("sea",), ("wind",)]
    with pytest.raises(UserError, match=r"a\.tsv:1: has 1 fields, but `columns` has 2 names"):
        texts(path, "calm sea\nwind\n", HEADERLESS)


def test_the_training_files_encoding_is_that_of_files_that_are_not_utf8(tmp_path: Path) -> None:
    for encoding in ("cp1252", "utf-8", "utf-8-sig"):
        found = texts(tmp_path / "a.tsv", "ça alors\tgood\n", HEADERLESS, encoding=encoding)
        assert found == [("ça alors",)]
    with pytest.raises(UserError, match="which is not UTF-8"):
        texts(tmp_path / "a.tsv", "text\nça alors\n", PLAIN, encoding="cp1252")


def test_columns_by_number(tmp_path: Path) -> None:
    assert texts(tmp_path / "a.csv", "1,calm sea\n0,wind\n", Layout(header=False), "2") == [("calm sea",), ("wind",)]


def test_a_note_where_reading_leaves_a_choice(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    assert texts(path, 'text\n"calm sea\nwind\n', PLAIN) == [('"calm sea',), ("wind",)]
    assert "quotes are part of the texts (1 rows have some)" in str(reading_note(path, ["text"], PLAIN))
    texts(path, "text\ncalm sea\n", PLAIN)
    assert reading_note(path, ["text"], PLAIN) is None
    assert reading_note(tmp_path / "a.parquet", ["text"], PLAIN) is None
