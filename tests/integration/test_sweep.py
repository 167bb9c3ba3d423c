"""Sweeps by real processes: shared, killed, pruned, failing."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.integration.command import start, weft
from tests.integration.test_resume import wait_for_steps
from tests.tiny import recipe_content, write_recipe
from weft.api import Quiet
from weft.foundation.errors import RunError, UserError
from weft.inference.model import load
from weft.recipes.recipe import load_recipe
from weft.run import train_run
from weft.sweep.config import load_sweep
from weft.sweep.search import run_sweep
from weft.sweep.store import ClaimedTrial
from weft.sweep.summary import Summary

pytestmark = pytest.mark.usefixtures("few_resamples")


def write_sweep(tiny: Path, folder: Path, head: str, search: str, **changes: Any) -> Path:
    folder.mkdir(exist_ok=True)
    write_recipe(folder, recipe_content(tiny, **changes))
    path = folder / "sweep.toml"
    path.write_text(f'name = "s"\nbase = "recipe.toml"\n{head}\n[search]\n{search}\n', encoding="utf-8")
    return path


class Listening:
    def __init__(self) -> None:
        self.heard: list[tuple[int, str]] = []

    def trial(self, claim: ClaimedTrial, planned: int) -> Quiet:
        self.heard.append((claim.number, "goes on" if claim.goes_on else f"one of {planned}"))
        return Quiet()

    def ended(self, claim: ClaimedTrial, words: str) -> None:
        self.heard.append((claim.number, words))


def run(file: Path, out: Path, **changes: Any) -> Summary:
    return run_sweep(load_sweep(str(file)).model_copy(update=changes), out, Listening())


def scores(out: Path) -> list[Any]:
    found = json.loads((out / "sweep.json").read_text())
    return [(trial["settings"], trial["state"], trial["score"]) for trial in found["trials"]]


def test_two_processes_share_a_grid_and_leave_a_recipe(tiny: Path, tmp_path: Path) -> None:
    file = write_sweep(
        tiny, tmp_path, 'sampler = "grid"\nbudget = { steps = 1 }', '"dropout" = [0.0, 0.2, 0.3]\n"seed" = [1]'
    )
    out = tmp_path / "out"
    beside = start("sweep", file, "-o", out)
    done = weft("sweep", file, "-o", out)
    said, errors = beside.communicate(timeout=120)
    assert beside.returncode == 0, errors
    found = json.loads((out / "sweep.json").read_text())
    points = [tuple(trial["settings"].values()) for trial in found["trials"]]
    assert sorted(points) == [(0.0, 1), (0.2, 1), (0.3, 1)]
    assert found["counts"]["done"] == 3
    assert sum(text.count("): dropout") for text in (done.stdout, said)) == 3, "each trial was run by one of them"
    best = max(found["trials"], key=lambda trial: trial["score"])
    assert found["best"] == best
    for text in (found["caution"], (out / "sweep.txt").read_text(), (out / "best.toml").read_text()):
        assert "best of 3 scores on the same dev rows" in text
    assert [path.parent.name for path in out.glob("trials/*/model")] == [f"{best['number']:04d}"]
    result = train_run(load_recipe(out / "best.toml"), tmp_path / "best", Quiet(), steps=1)
    assert result is not None
    assert result.overall == best["score"]
    model = load(best["run"])
    assert model.predict("sentiment", ["a warm film"])


def test_a_killed_sweep_goes_on_to_the_same_trials(tiny: Path, tmp_path: Path) -> None:
    head = 'sampler = "tpe"\ntrials = 2\nprune = { trials = 1 }\n'
    search = '"optimizer.lr" = { low = 1e-4, high = 1e-2, log = true }'
    file = write_sweep(tiny, tmp_path, head, search, epochs=8)
    run(file, tmp_path / "straight")
    out = tmp_path / "out"
    process = start("sweep", file, "-o", out)
    wait_for_steps(out / "trials" / "0000", 8)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (out / "trials" / "0000" / "result.json").exists()
    audience = Listening()
    run_sweep(load_sweep(str(file)), out, audience)
    assert audience.heard[0] == (0, "goes on")
    assert scores(out) == scores(tmp_path / "straight")
    assert len(scores(out)) == 2


def test_trials_that_fall_behind_are_stopped_and_those_that_fail_recorded(tiny: Path, tmp_path: Path) -> None:
    file = write_sweep(
        tiny,
        tmp_path,
        'sampler = "grid"\nseed = 0\nprune = { trials = 1 }',
        '"optimizer.lr" = [3e-2, 1e-7, 1e30]',
        epochs=3,
    )
    found = run(file, tmp_path / "out")
    by_rate = {trial.settings["optimizer.lr"]: trial for trial in found.trials}
    assert by_rate[1e30].state == "failed"
    assert "not a finite number" in by_rate[1e30].why
    assert found.best == by_rate[3e-2]
    assert found.best.number == 0, "the seed puts the good one first"
    assert by_rate[1e-7].state == "stopped"
    log = (Path(by_rate[1e-7].run) / "metrics.jsonl").read_text().splitlines()
    assert json.loads(log[-1])["epoch"] == 1
    assert by_rate[1e-7].score == json.loads(log[-1])["overall"]


def test_only_the_number_of_trials_may_change(tiny: Path, tmp_path: Path) -> None:
    file = write_sweep(
        tiny, tmp_path, 'sampler = "random"\ntrials = 1\nbudget = { steps = 1 }', '"dropout" = [0.0, 0.3]'
    )
    out = tmp_path / "out"
    first = run(file, out)
    assert run(file, out).trials == first.trials
    assert len(run(file, out, trials=2).trials) == 2
    with pytest.raises(UserError, match="seed: was 11711, is now 3.*only `trials` may change"):
        run(file, out, seed=3)
    write_recipe(tmp_path, recipe_content(tiny, epochs=5))
    with pytest.raises(UserError, match="epochs: was 2, is now 5"):
        run(file, out)
    with pytest.raises(UserError, match="exists and is not a sweep"):
        run(file, tmp_path)


def test_a_sweep_of_failures_says_why(tiny: Path, tmp_path: Path) -> None:
    file = write_sweep(tiny, tmp_path, 'sampler = "grid"', '"optimizer.lr" = [1e30]')
    with pytest.raises(RunError, match="no trial finished.*not a finite number"):
        run(file, tmp_path / "out")
