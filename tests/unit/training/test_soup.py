"""Soups against averages and greedy choices made by hand."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tests.integration.command import weft
from tests.tiny import recipe_content, write_body
from tests.unit.training.test_selection import Silent
from weft.foundation.errors import UserError
from weft.inference.model import load
from weft.recipes.recipe import parse_recipe
from weft.run import train_run
from weft.training.soup import make_soup, mean_of

FILES = ("model.safetensors", "heads.safetensors")


@pytest.fixture(scope="module")
def runs(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three seeds of one recipe, with scores that differ."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in (1, 2, 3):
        content = recipe_content(tiny, seed=seed, body_dropout=0.1 * (seed - 1))
        train_run(parse_recipe(content, "test"), folder / f"seed-{seed}", Silent(), steps=4 * seed, device="cpu")
    return sorted(folder.iterdir())


def tensors(model: Path) -> dict[str, np.ndarray]:
    return {name: t.double().numpy() for file in FILES for name, t in load_file(model / file).items()}


def test_greedy_by_dev_score(runs: list[Path], tmp_path: Path) -> None:
    """Every subset is averaged and scored by hand; the soup is the one that the greedy rule leads to."""
    states = {run.name: tensors(run / "model") for run in runs}

    def score(names: tuple[str, ...]) -> float:
        model = load(runs[0], "cpu")
        state = model.network.state_dict()
        others = [load(run, "cpu").network.state_dict() for run in runs if run.name in names]
        model.network.load_state_dict({k: sum(o[k].double() for o in others).float() / len(others) for k in state})
        return model.evaluate("dev").overall

    scores = {c: score(c) for n in (1, 2, 3) for c in itertools.combinations(sorted(states), n)}
    order = sorted(states, key=lambda name: -scores[name,])
    kept = [order[0]]
    for name in order[1:]:
        if scores[tuple(sorted([*kept, name]))] >= scores[tuple(sorted(kept))]:
            kept.append(name)
    made = make_soup(runs, tmp_path / "soup", device="cpu")
    assert [one.folder for one in made.record.ingredients] == order
    assert [one.folder for one in made.record.ingredients if one.kept] == kept
    assert made.record.overall == pytest.approx(scores[tuple(sorted(kept))], abs=1e-6)
    found = tensors(tmp_path / "soup")
    for name, tensor in found.items():
        mean = np.mean([states[run][name] for run in kept], axis=0)
        np.testing.assert_allclose(tensor, mean, atol=1e-6, err_msg=name)
    assert load(tmp_path / "soup", "cpu").evaluate("dev").overall == pytest.approx(made.record.overall, abs=1e-6)


def test_the_mean_of_weights() -> None:
    states = [{"w": torch.tensor([0.1, 5.0]) * k, "n": torch.tensor([3])} for k in (1, 2, 6)]
    mean = mean_of(states)
    torch.testing.assert_close(mean["w"], torch.tensor([0.3, 15.0]))
    assert mean["n"].tolist() == [3]


def test_the_command(runs: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "soup"
    done = weft("soup", runs[0], runs[1] / "model", runs[2], "-o", out, "--json")
    record = json.loads(done.stdout)
    assert record == json.loads((out / "soup.json").read_text())
    assert {one["folder"] for one in record["ingredients"]} == {"seed-1", "seed-2", "seed-3"}
    card = (out / "README.md").read_text()
    assert "## Ingredients" in card
    assert str(tmp_path) not in card
    again = weft("soup", *runs, "-o", out, code=2)
    assert "already exists; choose another folder" in again.stderr


def test_what_is_rejected(tiny: Path, runs: list[Path], tmp_path: Path) -> None:
    other = recipe_content(tiny, body=str(write_body(tmp_path / "wide", width=24)))
    train_run(parse_recipe(other, "test"), tmp_path / "wide-run", Silent(), steps=2, device="cpu")
    pooled = recipe_content(tiny)
    pooled["tasks"]["sentiment"]["pooling"] = "mean"
    train_run(parse_recipe(pooled, "test"), tmp_path / "pooled", Silent(), steps=2, device="cpu")
    for second, message in {
        tmp_path / "wide-run": "the body is",
        tmp_path / "pooled": "tasks.sentiment.pooling is",
        runs[0]: "at least two runs with different models",
        tmp_path / "nowhere": "is not a weft model",
    }.items():
        with pytest.raises(UserError, match=message):
            make_soup([runs[0], second], tmp_path / "soup", device="cpu")
        assert not (tmp_path / "soup").exists()
