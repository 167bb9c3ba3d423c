"""A file is replaced whole, or stays as it was."""

from pathlib import Path

import pytest

from weft.atomic import replacing, write_whole


def _write_half(path: Path) -> None:
    with replacing(path) as file:
        file.write_text("half")
        raise OSError("full")


def test_a_fault_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_whole(path, "old")
    with pytest.raises(OSError, match="full"):
        _write_half(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_replaces(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_whole(path, "old")
    with replacing(path) as file:
        file.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]
