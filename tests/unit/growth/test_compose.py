"""The recipe that adds tasks to a trained model."""

from pathlib import Path
from typing import Any

import pytest

from tests.tiny import recipe_content
from weft.foundation.errors import UserError
from weft.growth.compose import additions, grown_recipe
from weft.kinds import KINDS
from weft.kinds.labels import Labels
from weft.recipes.recipe import Recipe, parse_recipe
from weft.runs.model_folder import ModelSettings

FOLDER = Path("old/model")


@pytest.fixture
def model(tmp_path: Path) -> ModelSettings:
    content = recipe_content(tmp_path, seed=5)
    content["tasks"] = {name: content["tasks"][name] for name in ("sentiment", "similarity")}
    labels = {
        "sentiment": Labels(KINDS["classification"], names=("bad", "good")),
        "similarity": Labels(KINDS["regression"], low=0.0, high=5.0, scaled=True),
    }
    return ModelSettings(parse_recipe(content, "old"), labels, {})


def new(tmp_path: Path, task: str = "paraphrase", **changes: Any) -> Recipe:
    content = recipe_content(tmp_path, **changes)
    return parse_recipe(content | {"tasks": {task: content["tasks"][task]}}, "new")


def test_old_tasks_keep_their_settings_and_labels(model: ModelSettings, tmp_path: Path) -> None:
    grown = grown_recipe(FOLDER, model, new(tmp_path, epochs=7), "rehearse")
    assert list(grown.tasks) == ["sentiment", "similarity", "paraphrase"]
    assert (grown.body, grown.seed, grown.epochs) == (str(FOLDER), 5, 7)
    assert grown.tasks["sentiment"].labels == ("bad", "good")
    assert grown.tasks["similarity"].data == model.config.tasks["similarity"].data
    assert (grown.trainable.name, grown.schedule.tasks) == ("full", None)


def test_exact_trains_only_the_new_tasks(model: ModelSettings, tmp_path: Path) -> None:
    grown = grown_recipe(FOLDER, model, new(tmp_path), "exact")
    assert (grown.trainable.name, grown.schedule.tasks) == ("frozen", ("paraphrase",))
    phases = [{"epochs": 1, "schedule": "sequential"}, {"epochs": 1}]
    grown = grown_recipe(FOLDER, model, new(tmp_path, phases=phases), "exact")
    assert [phase.schedule.tasks for phase in grown.resolved_phases()] == [("paraphrase",)] * 2


def test_more_data_goes_through_the_same_head(model: ModelSettings, tmp_path: Path) -> None:
    grown = grown_recipe(FOLDER, model, new(tmp_path, "sentiment"), "rehearse")
    assert additions(grown) == ["sentiment-more"]
    assert grown.tasks["sentiment-more"].share_head == grown.tasks["sentiment"].share_head == "sentiment"
    grown = grown_recipe(FOLDER, model, new(tmp_path, "similarity"), "rehearse")
    assert grown.tasks["similarity-more"].range == (0.0, 5.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "sentiment"}, "tasks.sentiment: .* has this task"),
        ({"max_length": 30}, "max_length: found 30, but .* was trained with 24"),
        ({"seed": 6}, "seed: found 6"),
        ({"trainable": "full"}, "trainable: found 'full', but --keep exact freezes the body"),
        ({"phases": [{"epochs": 2, "trainable": "full"}]}, "phases.0.trainable: --keep exact freezes the body"),
    ],
)
def test_rejected(model: ModelSettings, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        grown_recipe(FOLDER, model, new(tmp_path, **changes), "exact")
