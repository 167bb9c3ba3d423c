"""A run that is killed and resumed ends with the same bytes as one that never was."""

import json
import signal
import time
from pathlib import Path

import pytest

from tests.fingerprint import fingerprint
from tests.integration.command import start, weft
from tests.tiny import recipe_content, write_recipe


@pytest.fixture(scope="module")
def recipe_file(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    content = recipe_content(tiny, epochs=20, max_length=10)
    content["tasks"]["sentiment"]["long_texts"] = {"name": "windows", "pool": "attention"}
    content["optimizer"] |= {"accumulate": 2}
    content["checkpoint"] = {"every_steps": 7}
    return write_recipe(tmp_path_factory.mktemp("recipe"), content)


@pytest.fixture(scope="module")
def straight(recipe_file: Path) -> Path:
    """Never interrupted."""
    out = recipe_file.parent / "straight"
    weft("train", recipe_file, "-o", out)
    return out


def steps_done(run: Path) -> int:
    try:
        return sum('"event": "step"' in line for line in (run / "metrics.jsonl").read_text().splitlines())
    except FileNotFoundError:
        return 0


def wait_for_steps(run: Path, steps: int) -> None:
    deadline = time.monotonic() + 120
    while steps_done(run) < steps:
        assert time.monotonic() < deadline, "the run did not get that far"
        time.sleep(0.002)


def test_killed_again_and_again(recipe_file: Path, straight: Path, tmp_path: Path) -> None:
    out = tmp_path / "killed"
    total = json.loads((straight / "result.json").read_text())["steps"]
    kills = 0
    for steps in (3, 20, total // 2):
        process = start("train", recipe_file, "-o", out, "--resume")
        wait_for_steps(out, steps)
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += not (out / "result.json").exists()
    assert kills == 3
    done = weft("train", recipe_file, "-o", out, "--resume")
    assert "going on after step" in done.stdout
    assert fingerprint(out) == fingerprint(straight)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_polite_stop_saves_and_says_how_to_go_on(
    recipe_file: Path, straight: Path, tmp_path: Path, number: signal.Signals
) -> None:
    out = tmp_path / "stopped"
    process = start("train", recipe_file, "-o", out)
    wait_for_steps(out, 10)
    process.send_signal(number)
    _, message = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "everything up to here is saved" in message
    assert f"weft train {recipe_file} -o {out} --resume" in message
    weft("train", recipe_file, "-o", out, "--resume")
    assert fingerprint(out) == fingerprint(straight)


def test_the_same_recipe_gives_the_same_bytes_and_another_seed_others(
    recipe_file: Path, straight: Path, tmp_path: Path
) -> None:
    weft("train", recipe_file, "-o", tmp_path / "again")
    assert fingerprint(tmp_path / "again") == fingerprint(straight)
    weft("train", recipe_file, "-o", tmp_path / "other", "--seed", "5", "--set", "epochs=2")
    name = "model/model.safetensors"
    assert fingerprint(tmp_path / "other")[name] != fingerprint(straight)[name]


def test_resuming_a_finished_run_changes_nothing(recipe_file: Path, straight: Path) -> None:
    before = fingerprint(straight)
    weft("train", recipe_file, "-o", straight, "--resume")
    assert fingerprint(straight) == before
