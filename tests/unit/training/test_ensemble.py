"""Ensembles against means made by hand, and as teachers."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.integration.command import weft
from tests.tiny import recipe_content
from tests.unit.training.test_selection import Silent
from weft.foundation.errors import UserError
from weft.inference.model import load
from weft.recipes.recipe import parse_recipe
from weft.run import train_run
from weft.training.ensemble import make_ensemble, members_of


@pytest.fixture(scope="module")
def runs(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("members")
    for seed in (1, 2):
        train_run(parse_recipe(recipe_content(tiny, seed=seed), "test"), folder / f"{seed}", Silent(), steps=4 * seed)
    return sorted(folder.iterdir())


def test_the_mean_prediction_is_scored(runs: list[Path], tmp_path: Path) -> None:
    made = make_ensemble(runs, tmp_path / "both", device="cpu")
    assert json.loads((tmp_path / "both" / "ensemble.json").read_text())["overall"] == made.overall
    models = [load(run, "cpu") for run in runs]
    assert [one.scores for one in made.members] == [model.evaluate("dev").scores for model in models]
    for task, own in models[0].datasets(models[0].tasks, "dev").items():
        labels = models[0].labels[task]
        answers = [labels.in_units(model.evaluate("dev").predictions[task]) for model in models]
        mean, truth = (answers[0] + answers[1]) / 2, labels.in_units(own.targets)
        if labels.names:
            expected = {"accuracy": float(np.mean(mean.argmax(axis=1) == own.targets))}
        else:
            expected = {"pearson": float(np.corrcoef(mean, truth)[0, 1])}
        for metric, value in expected.items():
            assert made.scores[task][metric] == pytest.approx(value, abs=1e-9)


def test_a_student_learns_the_same_from_an_ensemble_as_from_its_members(
    tiny: Path, runs: list[Path], tmp_path: Path
) -> None:
    make_ensemble(runs, tmp_path / "both", device="cpu")
    for name, teachers in (("from-list", [str(run) for run in runs]), ("from-both", [str(tmp_path / "both")])):
        content = recipe_content(tiny, distill={"teachers": teachers})
        train_run(parse_recipe(content, "test"), tmp_path / name, Silent(), steps=2, device="cpu")
    weights = [(tmp_path / name / "model" / "model.safetensors").read_bytes() for name in ("from-list", "from-both")]
    assert weights[0] == weights[1]


def test_a_changed_member_is_rejected(tiny: Path, runs: list[Path], tmp_path: Path) -> None:
    make_ensemble(runs, tmp_path / "both", device="cpu")
    file = tmp_path / "both" / "ensemble.json"
    content = json.loads(file.read_text())
    content["members"][1]["digest"] = "0" * 64
    file.write_text(json.dumps(content))
    with pytest.raises(UserError, match="has changed; make the ensemble again"):
        members_of(tmp_path / "both")
    content["members"][1]["folder"] = str(tmp_path / "gone")
    file.write_text(json.dumps(content))
    recipe = parse_recipe(recipe_content(tiny, distill={"teachers": [str(tmp_path / "both")]}), "test")
    with pytest.raises(UserError, match=r"distill.teachers: .*gone does not exist"):
        train_run(recipe, tmp_path / "student", Silent(), steps=2, device="cpu")


def test_one_model_is_no_ensemble(runs: list[Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="at least two different models"):
        make_ensemble([runs[0], runs[0] / "model"], tmp_path / "one", device="cpu")
    assert not (tmp_path / "one").exists()


def test_the_command(runs: list[Path], tmp_path: Path) -> None:
    done = weft("ensemble", *runs, "-o", tmp_path / "both", "--json")
    assert len(json.loads(done.stdout)["members"]) == 2
    again = weft("ensemble", *runs, "-o", tmp_path / "both", code=2)
    assert "already exists" in again.stderr
