"""Full disks, folders that may not be written, memory that ends."""

import fcntl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fingerprint import fingerprint
from tests.forks import Forks
from tests.tiny import recipe_content, write_recipe

MIB = 1 << 20


@pytest.fixture
def recipe(tiny: Path, tmp_path: Path) -> Path:
    return write_recipe(tmp_path, recipe_content(tiny, checkpoint={"every_steps": 2}))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two mebibytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small file system needs root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_loses_nothing(recipe: Path, forks: Forks, small_disk: Path, tmp_path: Path) -> None:
    assert forks.weft("train", recipe, "-o", tmp_path / "straight").code == 0
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * (2 * MIB - 300 * 1024))  # room for one checkpoint, not for three
    out = small_disk / "run"
    done = forks.weft("train", recipe, "-o", out)
    assert done.code == 1
    assert "No space left on device" in done.stderr
    assert "continue with --resume" in done.stderr
    filler.unlink()
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    assert forks.weft("train", recipe, "-o", out, "--resume").code == 0
    assert fingerprint(out) == fingerprint(tmp_path / "straight")


@pytest.mark.parametrize("sync", [2, 7, 15])
def test_a_disk_that_fills_in_the_midst_of_a_checkpoint(recipe: Path, forks: Forks, tmp_path: Path, sync: int) -> None:
    assert forks.weft("train", recipe, "-o", tmp_path / "straight").code == 0
    out = tmp_path / "run"
    done = forks.weft("train", recipe, "-o", out, full=sync)
    assert done.code == 1
    assert "No space left on device" in done.stderr
    assert not list(out.glob("checkpoints/.*"))  # half a checkpoint would keep the disk full
    assert forks.weft("train", recipe, "-o", out, "--resume").code == 0
    assert fingerprint(out) == fingerprint(tmp_path / "straight")


def test_a_disk_that_may_not_be_written(recipe: Path, forks: Forks, small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    done = forks.weft("train", recipe, "-o", small_disk / "run")
    assert done.code == 2
    assert "cannot be written (Read-only file system)" in done.stderr


def test_two_runs_into_one_folder(recipe: Path, forks: Forks, tmp_path: Path) -> None:
    out = tmp_path / "run"
    out.mkdir()
    with (out / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = forks.weft("train", recipe, "-o", out, "--resume")
    assert done.code == 2
    assert "another process is training into this folder" in done.stderr
    assert forks.weft("train", recipe, "-o", out, "--resume").code == 0  # the lock of a dead process blocks nobody


def test_memory_that_ends(tiny: Path, forks: Forks, tmp_path: Path) -> None:
    """The limit is set inside the process, after its imports."""
    content = recipe_content(tiny, max_length=64)
    content["tasks"] = {"sentiment": content["tasks"]["sentiment"]}
    rows = "text\tlabel\n" + "".join(f"a {'warm ' * 60}film {i}\t{['bad', 'good'][i % 2]}\n" for i in range(3000))
    (tmp_path / "many.tsv").write_text(rows)
    content["tasks"]["sentiment"] |= {"batch_size": 3000, "head": {"name": "hidden", "units": 2000}}
    content["tasks"]["sentiment"]["data"] |= {"train": str(tmp_path / "many.tsv")}
    recipe = write_recipe(tmp_path, content)
    done = forks.weft("train", recipe, "-o", tmp_path / "run", memory=250 * MIB)
    assert done.code == 1, (done.code, done.stderr)
    assert "the memory is full. Less is needed with smaller batches" in done.stderr


def test_output_of_predict_on_a_full_disk(recipe: Path, forks: Forks, small_disk: Path, tmp_path: Path) -> None:
    assert forks.weft("train", recipe, "-o", tmp_path / "run").code == 0
    (tmp_path / "many.csv").write_text("text\n" + "a warm film\n" * 20_000)
    old = small_disk / "answers.jsonl"
    old.write_text("of an earlier day\n")
    done = forks.weft("predict", tmp_path / "run", "sentiment", "--input", tmp_path / "many.csv", "--output", old)
    assert done.code == 1
    assert "No space left on device" in done.stderr
    assert old.read_text() == "of an earlier day\n"
    assert not list(small_disk.glob("**/*.tmp"))  # half a file would keep the disk full
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    again = forks.weft("predict", tmp_path / "run", "sentiment", "--input", tmp_path / "many.csv", "--output", old)
    assert "weft: going on after" in again.stderr
    assert len(old.read_text().splitlines()) == 20_000
    assert [path.name for path in small_disk.iterdir()] == ["answers.jsonl"]
