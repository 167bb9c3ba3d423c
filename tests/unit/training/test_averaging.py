"""EMA and SWA against averages computed from a record of all weights."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.fingerprint import fingerprint
from tests.tiny import recipe, recipe_content
from tests.unit.training.test_selection import Silent
from weft.build import assemble
from weft.foundation.errors import UserError
from weft.inference.model import load
from weft.recipes.recipe import parse_recipe, recipe_toml
from weft.run import train_run
from weft.training.averaging import EmaConfig, SwaConfig, WeightAverage

Weights = dict[str, Tensor]
EMA = {"name": "ema", "decay": 0.8}
SWA = {"name": "swa", "start": 0.4, "every": 3}


def brute_force(history: list[Weights], average: dict[str, Any]) -> Weights:
    """The definition: a weighted mean of the weights after each step, in double precision."""
    steps = len(history)
    if average["name"] == "ema":
        counts = {i: average["decay"] ** (steps - i) for i in range(1, steps + 1)}
    else:
        first = round(average["start"] * steps)
        counts = dict.fromkeys(range(first, steps + 1, average["every"]), 1.0)
        assert len(counts) > 2
    return {
        name: sum(count * history[i - 1][name].double() for i, count in counts.items()) / sum(counts.values())
        for name in history[0]
    }


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> list[Weights]:
    """The weights after every step of the next run."""
    found: list[Weights] = []
    update = WeightAverage.update

    def record(self: WeightAverage, step: int) -> None:
        found.append({str(i): p.detach().clone() for i, p in enumerate(self._weights)})
        update(self, step)

    monkeypatch.setattr(WeightAverage, "update", record)
    return found


@pytest.mark.parametrize("average", [EMA, SWA], ids=["ema", "swa"])
def test_the_saved_model_has_the_averaged_weights(
    tiny: Path, tmp_path: Path, history: list[Weights], average: dict[str, Any], few_resamples: None
) -> None:
    made = recipe(tiny, epochs=1, average=average)
    train_run(made, tmp_path / "run", Silent(), steps=12, device="cpu")
    wanted = brute_force(history, average)
    model = load(tmp_path / "run", "cpu")
    for number, (name, parameter) in enumerate(model.network.named_parameters()):
        torch.testing.assert_close(parameter.double(), wanted[str(number)], atol=1e-6, rtol=0, msg=name)
        if "tokens" not in name and "segments" not in name:  # some rows of these never change
            assert not torch.equal(parameter, history[-1][str(number)]) or "pooler" in name
    # the score in the log is the score of these weights
    saved = model.evaluate("dev")
    assert saved.overall == pytest.approx(float(_last(tmp_path / "run")["overall"]), abs=1e-6)


@pytest.mark.parametrize("average", [EMA, SWA], ids=["ema", "swa"])
def test_resumes_exactly_through_frozen_phases(
    tiny: Path, tmp_path: Path, average: dict[str, Any], few_resamples: None
) -> None:
    content = recipe_content(tiny, epochs=2, average=average)
    content["phases"] = [{"epochs": 1, "trainable": "frozen"}, {"epochs": 1}]
    made = parse_recipe(content, "test")
    train_run(made, tmp_path / "straight", Silent(), device="cpu")
    for stop in (3, 8):
        with pytest.raises(Killed):
            train_run(made, tmp_path / "killed", Dying(stop), device="cpu", resume=True)
    train_run(made, tmp_path / "killed", Silent(), device="cpu", resume=True)
    assert fingerprint(tmp_path / "killed") == fingerprint(tmp_path / "straight")


def test_averaging_changes_no_step(tiny: Path, tmp_path: Path, few_resamples: None) -> None:
    """The weights that train are those of a run without an average."""
    runs = {}
    for name, changes in {"plain": {}, "ema": {"average": "ema"}}.items():
        train_run(recipe(tiny, epochs=1, **changes), tmp_path / name, Silent(), device="cpu")
        runs[name] = [line for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines() if "norm" in line]
    losses = {name: [_losses(line) for line in lines] for name, lines in runs.items()}
    assert losses["plain"] == losses["ema"]


def test_swapping_is_exact_and_frozen_weights_equal_their_average() -> None:
    network = nn.Linear(3, 2)
    average = WeightAverage(network, EmaConfig(decay=0.5), 10)
    start = network.bias.detach().clone()
    for step in range(1, 6):
        with torch.no_grad():
            network.weight.add_(torch.randn(2, 3, generator=torch.Generator().manual_seed(step)))
        average.update(step)
    before = network.weight.detach().clone()
    with average.applied():
        assert not torch.equal(network.weight, before)
        assert torch.equal(network.bias, start)
    assert torch.equal(network.weight, before)


def test_an_average_of_one_step_is_rejected(tiny: Path) -> None:
    for average in ({"name": "swa", "start": 0.95}, {"name": "swa", "every": 500}):
        with pytest.raises(UserError, match=r"average: 'swa' .* averages the weights of one step in a run of"):
            assemble(recipe(tiny, epochs=1, average=average), device="cpu")
    with pytest.raises(UserError, match="average: 'ema' averages over steps, but the run has only one"):
        assemble(recipe(tiny, average="ema"), steps=1, device="cpu")


def test_the_recipe_says_it(tiny: Path) -> None:
    assert recipe(tiny, average="swa").average == SwaConfig()
    assert "average" not in recipe_toml(recipe(tiny))


class Killed(Exception):
    pass


class Dying(Silent):
    """Ends a run after a number of steps as a crash would: without a word, and without a checkpoint."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self.step = step

    def stepped(self, *seen: object) -> None:
        if seen[0] == self.step:
            raise Killed


def _last(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "result.json").read_text())
    return found


def _losses(line: str) -> Any:
    return json.loads(line)["losses"]
