"""A prediction of a file that is killed at any moment and started again ends with the same bytes."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.exported import write_model
from tests.forks import Forks
from tests.texts import WORDS
from tests.tiny import write_rows
from weft.inference.bulk.parts import parts_folder

SHARDS = 16


def many_texts(path: Path, rows: int) -> Path:
    draw = random.Random(rows)
    texts = [{"text": f"{' '.join(draw.choices(WORDS, k=draw.randint(1, 9)))} {i}"} for i in range(rows)]
    return write_rows(path, texts)


@pytest.fixture(scope="module")
def model(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tiny, tmp_path_factory.mktemp("bulk"), {"mood": {"like": "sentiment"}})


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_killed_three_times_at_random(model: Path, forks: Forks, tmp_path: Path, ending: str) -> None:
    source = many_texts(tmp_path / "in.tsv", 3000)

    def predict(output: Path, kill: tuple[str, int] | None = None) -> int:
        rows = 3000 // SHARDS
        arguments = ["predict", model, "mood", "--input", source, "--output", output, "--shard-rows", rows]
        return forks.weft(*arguments, kill=kill).code

    assert predict(tmp_path / f"straight.{ending}") == 0
    output = tmp_path / f"out.{ending}"
    draw = random.Random(ending)
    for phase in ("answering a shard", "saving a shard", "saving a shard"):
        assert predict(output, (phase, draw.randint(2, SHARDS // 4))) == -signal.SIGKILL
        assert not output.exists()
    assert predict(output) == 0
    assert output.read_bytes() == (tmp_path / f"straight.{ending}").read_bytes()
    assert not parts_folder(output).exists()


def test_killed_between_the_end_and_the_clearing_away(model: Path, forks: Forks, tmp_path: Path) -> None:
    """Killed after the syncs of the manifest, of the part, of the whole file and of its folder."""
    source, output = many_texts(tmp_path / "in.tsv", 20), tmp_path / "out.csv"
    command = ["predict", model, "mood", "--input", source, "--output", output]
    assert forks.weft(*command).code == 0
    expected = output.read_bytes()
    output.unlink()
    for sync in (1, 2, 2, 2):  # what an earlier life has finished is not synced again
        assert not output.exists()
        assert forks.weft(*command, kill=["saving a shard", sync]).code == -signal.SIGKILL
        assert parts_folder(output).exists()
    assert output.read_bytes() == expected
    assert forks.weft(*command).code == 0
    assert output.read_bytes() == expected
    assert not parts_folder(output).exists()


@pytest.mark.long
def test_two_hundred_thousand_rows_killed_three_times_at_random(model: Path, tmp_path: Path) -> None:
    """Whenever the clock says so: while it starts, reads, answers or saves."""
    source = many_texts(tmp_path / "in.tsv", 200_000)

    def start(output: Path) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "weft", "predict", str(model), "mood", "--input", str(source)]
        return subprocess.Popen([*command, "--output", str(output)], stderr=subprocess.DEVNULL)

    begin = time.perf_counter()
    assert start(tmp_path / "straight.parquet").wait() == 0
    whole = time.perf_counter() - begin
    output = tmp_path / "out.parquet"
    for _ in range(3):
        life = start(output)
        time.sleep(random.uniform(0.1, 0.45) * whole)
        life.kill()
        assert life.wait() == -signal.SIGKILL
        assert not output.exists()
    assert start(output).wait() == 0
    assert output.read_bytes() == (tmp_path / "straight.parquet").read_bytes()


@pytest.mark.long
@pytest.mark.parametrize(("command", "ending"), [(["predict", "mood"], "csv"), (["embed"], "npy")])
def test_shards_on_ray_give_the_same_bytes(model: Path, tmp_path: Path, command: list[str], ending: str) -> None:
    source = many_texts(tmp_path / "in.tsv", 2000)
    outputs = {executor: tmp_path / f"{executor}.{ending}" for executor in ("local", "ray")}
    for executor, output in outputs.items():
        name, *rest = command
        files = ["--input", str(source), "--output", str(output), "--shard-rows", "300", "--executor", executor]
        done = subprocess.run(
            [sys.executable, "-m", "weft", name, str(model), *rest, *files], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert not parts_folder(output).exists()
    assert outputs["ray"].read_bytes() == outputs["local"].read_bytes()
