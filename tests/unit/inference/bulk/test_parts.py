"""The work folder: whose it is, who holds it, what is left."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from weft.foundation.errors import UserError
from weft.inference.bulk.parts import Parts, parts_folder, read_manifest

MANIFEST = {"input": "a", "rows": 3}


def chain(parts: Iterator[Path], to: Path) -> None:
    to.write_bytes(b"".join(path.read_bytes() for path in parts))


def test_parts_are_found_again_joined_and_cleared_away(tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    first = Parts(output, MANIFEST)
    first.write(1, b"b")
    first.close()
    (first.folder / ".out.csv.4711.tmp").write_bytes(b"half of")  # killed while it joined
    second = Parts(output, MANIFEST)
    assert not list(second.folder.glob(".*.tmp"))
    assert (0 in second, 1 in second) == (False, True)
    second.write(0, b"a")
    assert not output.exists()
    second.finish(2, chain)
    second.close()
    assert output.read_bytes() == b"ab"
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


def test_parts_of_other_work_are_cleared(tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    first = Parts(output, MANIFEST)
    first.write(0, b"a")
    first.close()
    second = Parts(output, {"input": "b", "rows": 3})
    assert 0 not in second
    assert read_manifest(output)["input"] == "b"
    second.close()


def test_one_process_at_a_time(tmp_path: Path) -> None:
    holder = Parts(tmp_path / "out.csv", MANIFEST)
    with pytest.raises(UserError, match="another process is writing this output"):
        Parts(tmp_path / "out.csv", MANIFEST)
    holder.close()
    Parts(tmp_path / "out.csv", MANIFEST).close()


@pytest.mark.parametrize("is_folder", [True, False])
def test_what_is_not_ours_is_left_alone(tmp_path: Path, is_folder: bool) -> None:
    place = parts_folder(tmp_path / "out.csv")
    if is_folder:
        place.mkdir()
    mine = place / "00000000.part" if is_folder else place
    mine.write_text("spare wheels")
    with pytest.raises(UserError, match="which is not one; move it"):
        Parts(tmp_path / "out.csv", MANIFEST)
    assert mine.read_text() == "spare wheels"


def test_a_file_that_somebody_puts_beside_the_parts_survives(tmp_path: Path) -> None:
    parts = Parts(tmp_path / "out.csv", MANIFEST)
    parts.write(0, b"a")
    (parts.folder / "notes.txt").write_text("mine")
    parts.finish(1, chain)
    parts.close()
    assert [path.name for path in parts.folder.iterdir()] == ["notes.txt"]


def test_a_join_that_fails_leaves_the_parts_and_nothing_half(tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_text("of an earlier day")
    parts = Parts(tmp_path / "out.csv", MANIFEST)
    parts.write(0, b"a")

    def fail(paths: Iterator[Path], to: Path) -> None:
        chain(paths, to)
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space"):
        parts.finish(1, fail)
    parts.close()
    assert (tmp_path / "out.csv").read_text() == "of an earlier day"
    assert sorted(path.name for path in parts.folder.iterdir()) == [".lock", "00000000.part", "manifest.json"]


def test_a_symbolic_link_among_the_shards_is_rejected(tmp_path: Path) -> None:
    output, target = tmp_path / "out.csv", tmp_path / "target"
    folder = parts_folder(output)
    folder.mkdir()
    (folder / "manifest.json").write_text("{}")
    (folder / ".lock").symlink_to(target)
    with pytest.raises(UserError, match="is a symbolic link to"):
        Parts(output, {})
    for path in [*folder.iterdir()]:
        path.unlink()
    folder.rmdir()
    folder.symlink_to(tmp_path)
    with pytest.raises(UserError, match="is a symbolic link"):
        Parts(output, {})
    assert not target.exists()
