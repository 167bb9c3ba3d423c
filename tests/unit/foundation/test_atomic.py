"""A file is replaced whole, or stays as it was, and no symbolic link is followed to write it."""

import os
from pathlib import Path

import pytest

from weft.foundation.atomic import give_usual_mode, open_in_place, replacing, require_no_links, write_whole
from weft.foundation.errors import UserError


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


def test_a_link_is_replaced_not_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("mine")
    link.symlink_to(target)
    write_whole(link, "theirs")
    assert target.read_text() == "mine"
    assert not link.is_symlink()


def test_temporary_names_cannot_be_guessed(tmp_path: Path) -> None:
    path, names = tmp_path / "a", set()
    for _ in range(5):
        with replacing(path) as file:
            assert file.exists(), "the name is taken before anybody else can take it"
            names.add(file.name)
    assert len(names) == 5
    assert not any(str(os.getpid()) in name.split(".") for name in names)


def test_a_name_that_is_taken_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who knew the name could put a link there."""
    monkeypatch.setattr("weft.foundation.atomic.secrets.token_hex", lambda _: "known")
    target = tmp_path / "target"
    (tmp_path / ".a.known.tmp").symlink_to(target)
    with pytest.raises(FileExistsError), replacing(tmp_path / "a"):
        pass
    assert not target.exists()


def test_a_link_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="symbolic links"):
        open_in_place(tmp_path / "link", "a")
    assert not (tmp_path / "target").exists()


def test_links_are_found_at_any_depth(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    require_no_links(tmp_path)
    (tmp_path / "a" / "b" / "c").symlink_to("/nowhere")
    with pytest.raises(UserError, match="c: is a symbolic link to /nowhere"):
        require_no_links(tmp_path)


def test_the_mode_follows_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "a", "x")
        (tmp_path / "b").touch(mode=0o600)
        give_usual_mode(tmp_path / "b")
        write_whole(tmp_path / "c", "x", mode=0o600)
    finally:
        os.umask(before)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in "abc"] == [0o640, 0o640, 0o600]
