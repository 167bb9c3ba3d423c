"""The recipe that adds tasks to a trained model."""

from pathlib import Path
from typing import Any

import pytest

from tests.tiny import recipe_content
from weft.bodies.adapters.lora import LoraConfig
from weft.foundation.errors import UserError
from weft.growth.compose import additions, grown_recipe
from weft.kinds import KINDS
from weft.kinds.labels import Labels
from weft.recipes.recipe import Recipe, parse_recipe
from weft.runs.model_folder import ModelSettings
from weft.training.trainable import FrozenConfig

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


def adapted(model: ModelSettings, **adapter: Any) -> ModelSettings:
    config = model.config.model_copy(update={"adapter": LoraConfig(**adapter)})
    return ModelSettings(config, model.labels, {})


def test_exact_gives_new_tasks_adapters_of_their_own(model: ModelSettings, tmp_path: Path) -> None:
    recipe = new(tmp_path, adapter={"name": "lora", "per_task": True})
    for old, owners in ((model, ()), (adapted(model, per_task=True), ("sentiment", "similarity"))):
        grown = grown_recipe(FOLDER, old, recipe, "exact")
        assert grown.adapter is not None
        assert grown.adapter.tasks == (*owners, "paraphrase")
        assert grown.trainable == FrozenConfig()
    kept = grown_recipe(FOLDER, adapted(model, per_task=True, tasks=("sentiment",)), new(tmp_path), "exact")
    assert kept.adapter is not None
    assert kept.adapter.tasks == ("sentiment",)


def test_a_shared_adapter_is_kept_and_frozen_by_exact(model: ModelSettings, tmp_path: Path) -> None:
    exact, rehearse = (grown_recipe(FOLDER, adapted(model), new(tmp_path), keep) for keep in ("exact", "rehearse"))  # type: ignore[arg-type]
    assert exact.adapter == rehearse.adapter == LoraConfig()
    assert exact.trainable == FrozenConfig(adapters=False)
    assert rehearse.trainable == FrozenConfig()


def test_more_data_trains_the_adapter_of_its_task(model: ModelSettings, tmp_path: Path) -> None:
    grown = grown_recipe(FOLDER, adapted(model, per_task=True), new(tmp_path, "sentiment"), "rehearse")
    assert grown.adapter is not None
    assert grown.adapter.tasks == ("sentiment", "similarity", "sentiment-more")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"adapter": "lora"}, "adapter: --keep exact gives new tasks adapters of their own; set per_task = true"),
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


def test_a_model_has_one_kind_of_adapter(model: ModelSettings, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="adapter: differs from that of old/model"):
        grown_recipe(FOLDER, adapted(model), new(tmp_path, adapter="pal"), "rehearse")
