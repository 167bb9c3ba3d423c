"""The recipe that adds tasks to a trained model."""

from pathlib import Path
from typing import Any

import pytest

from tests.tiny import recipe_content
from weft.bodies.adapters.lora import LoraConfig
from weft.data.config import PRESETS
from weft.foundation.errors import UserError
from weft.growth.compose import KEEPS, additions, grown_recipe
from weft.kinds import KINDS
from weft.kinds.labels import Labels
from weft.recipes.recipe import Recipe, parse_recipe
from weft.runs.model_folder import ModelSettings
from weft.tasks.config import TaskConfig
from weft.training.distillation import DistillConfig
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


def test_exact_keeps_the_files_of_old_tasks(model: ModelSettings, tmp_path: Path) -> None:
    """They are not read, but a later `weft add` may need them."""
    grown = grown_recipe(FOLDER, model, new(tmp_path), "exact")
    assert grown.tasks["sentiment"] == model.config.tasks["sentiment"], "the labels are those of the model"


def test_distill_needs_no_train_files(model: ModelSettings, tmp_path: Path) -> None:
    before = model.config.tasks["sentiment"].data
    fraction = before.model_copy(update={"dev": None, "dev_fraction": 0.3})
    model.config.tasks["similarity"] = model.config.tasks["similarity"].model_copy(update={"data": fraction})
    grown = grown_recipe(FOLDER, model, new(tmp_path), "distill")
    first, second = grown.tasks["sentiment"].data, grown.tasks["similarity"].data
    assert (first.train, first.dev, first.dev_fraction) == (None, before.dev, None)
    assert (second.train, second.dev, second.dev_fraction) == (None, before.train, 0.3), "the same rows are held out"
    assert first.given == second.given == ("unlabelled",)
    assert grown.tasks["sentiment"].labels is None, "they are those of the model"
    assert parse_recipe(grown.content(), "again") == grown


def test_distill_makes_the_old_model_a_teacher(model: ModelSettings, tmp_path: Path) -> None:
    grown = grown_recipe(FOLDER, model, new(tmp_path), "distill")
    assert grown.distill == DistillConfig(teachers=(str(FOLDER),))
    assert (grown.trainable.name, grown.schedule.tasks) == ("full", None)
    own = {"teachers": ["other", str(FOLDER)], "temperature": 1.0}
    grown = grown_recipe(FOLDER, model, new(tmp_path, distill=own), "distill")
    assert grown.distill == DistillConfig(teachers=(str(FOLDER), "other"), temperature=1.0)


def test_tasks_that_may_read_the_same_texts_have_one_batch_size(model: ModelSettings, tmp_path: Path) -> None:
    tasks = model.config.tasks
    tasks["mood"] = tasks["sentiment"].model_copy(update={"batch_size": 9})
    model.labels["mood"] = model.labels["sentiment"]
    sizes = {
        name: task.batch_size for name, task in grown_recipe(FOLDER, model, new(tmp_path), "distill").tasks.items()
    }
    assert sizes == {"sentiment": 9, "similarity": 5, "mood": 9, "paraphrase": 8}


def test_more_data_for_a_task_whose_data_are_gone(model: ModelSettings, tmp_path: Path) -> None:
    grown = grown_recipe(FOLDER, model, new(tmp_path, "sentiment"), "distill")
    assert additions(grown) == ["sentiment-more"]
    more = grown.tasks["sentiment-more"]
    assert (more.data.train is not None, more.labels, more.share_head) == (True, ("bad", "good"), "sentiment")


def test_other_dev_files(model: ModelSettings, tmp_path: Path) -> None:
    old = model.config.tasks["sentiment"].data
    file = tmp_path / "dev.tsv"
    for keep in KEEPS:
        grown = grown_recipe(FOLDER, model, new(tmp_path), keep, files={"sentiment": file})
        data = grown.tasks["sentiment"].data
        assert (data.dev, data.train) == (str(file), None if keep == "distill" else old.train)
    with pytest.raises(UserError, match="--file mood: old/model has no such task; it has sentiment, similarity"):
        grown_recipe(FOLDER, model, new(tmp_path), "exact", files={"mood": file})


def test_files_of_presets_are_found_in_the_data_folder(model: ModelSettings, tmp_path: Path) -> None:
    data = PRESETS["sst5"].model_copy(update={"train": "/gone/ids-sst-train.csv", "dev": "/gone/ids-sst-dev.csv"})
    model.config.tasks["sentiment"] = model.config.tasks["sentiment"].model_copy(update={"data": data})
    grown = grown_recipe(FOLDER, model, new(tmp_path), "rehearse", tmp_path)
    assert grown.tasks["sentiment"].data.train == str(tmp_path / "ids-sst-train.csv")
    assert grown.tasks["sentiment"].data.dev == str(tmp_path / "ids-sst-dev.csv")


def test_matches_cannot_be_distilled(model: ModelSettings, tmp_path: Path) -> None:
    data = {"train": "t.tsv", "dev": "d.tsv", "text2": "text2"}
    model.config.tasks["match"] = TaskConfig.model_validate({"kind": "matches", "data": data})
    model.labels["match"] = Labels(KINDS["matches"])
    with pytest.raises(UserError, match="tasks.match: the answers of a task with kind = 'matches' cannot be distilled"):
        grown_recipe(FOLDER, model, new(tmp_path), "distill")
