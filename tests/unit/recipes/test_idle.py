"""Every note about a recipe stands where its condition holds, and nowhere else."""

from pathlib import Path
from typing import Any

import pytest

from tests.exported import write_model
from tests.tiny import recipe_content, write_rows
from weft.build import assemble
from weft.foundation.errors import UserError
from weft.foundation.values import Part, Window
from weft.recipes.idle import untrained
from weft.recipes.recipe import load_recipe, parse_recipe
from weft.schedules.plan import Plan


def notes_of(content: dict[str, Any], steps: int | None = None) -> list[str]:
    """Without those about the data, which `tests/unit/data/test_remarks.py` looks at."""
    notes = assemble(parse_recipe(content, "noted"), steps=steps, device="cpu").notes
    return [note for note in notes if "dev rows" not in note]


@pytest.fixture(scope="module")
def model(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    tasks = {name: {"like": name} for name in ("sentiment", "paraphrase", "similarity")}
    return write_model(tiny, tmp_path_factory.mktemp("model"), tasks)


def content_of(tiny: Path, **changes: Any) -> dict[str, Any]:
    """The tiny recipe, whose notes are none."""
    return recipe_content(tiny, **changes)


def one_task_alone(tiny: Path, **changes: Any) -> dict[str, Any]:
    """A schedule that leaves all tasks but one out."""
    return content_of(tiny, schedule={"name": "batch-round-robin", "tasks": ["sentiment"]}, **changes)


def test_a_plain_recipe_has_no_notes(tiny: Path) -> None:
    assert notes_of(content_of(tiny)) == []
    assert notes_of(content_of(tiny), steps=12) == []


def test_loss_scales_are_noted_where_tasks_share_steps(tiny: Path, tmp_path: Path) -> None:
    """Numbers from 0 to 50 that are not scaled have a variance far above the entropy of two classes."""
    file = str(
        write_rows(
            tmp_path / "far.tsv", [{"a": f"a cat {i}", "b": f"a dog {i}", "sim": 50 * (i % 2)} for i in range(8)]
        )
    )
    content = content_of(tiny)
    data = {"train": file, "dev": file, "text": "a", "text2": "b", "label": "sim"}
    content["tasks"]["similarity"] |= {"scale": False, "data": data}
    (note,) = notes_of(content)
    assert note.startswith("the tasks' losses differ in scale by more than 10")
    assert notes_of(content | {"schedule": "alternating"}) == []
    assert notes_of(content | {"weighting": "normalized"}) == []


def test_a_fresh_head_that_gets_no_batch_is_untrained(tiny: Path) -> None:
    found = [note for note in notes_of(one_task_alone(tiny)) if "gets no batch" in note]
    assert [note.split(":")[0] for note in found] == ["paraphrase", "similarity"]
    assert all(note.endswith("its scores are those of an untrained head") for note in found)


def test_an_adopted_head_that_gets_no_batch_is_not(tiny: Path, model: Path) -> None:
    notes = notes_of(one_task_alone(tiny, body=str(model)))
    found = [note for note in notes if "gets no batch" in note]
    assert len(found) == 2
    assert all(note.endswith(f"its head stays as it is in {model}, while the body under it changes") for note in found)
    frozen = notes_of(one_task_alone(tiny, body=str(model), trainable="frozen"))
    assert any(note.endswith(f"its head stays as it is in {model}, and so does the body") for note in frozen)
    assert not [note for note in notes + frozen if "untrained" in note]


def test_a_head_without_weights_has_nothing_to_train(tiny: Path, model: Path) -> None:
    content = one_task_alone(tiny)
    content["tasks"]["similarity"]["head"] = "cosine"
    found = [note for note in notes_of(content) if note.startswith("similarity:")]
    assert found == [
        "similarity: gets no batch in 14 steps; its head has no weights, so its scores depend on the body alone"
    ]
    content["body"] = str(model)  # and there is nothing to adopt either
    assert [note for note in notes_of(content) if note.startswith("similarity:")] == found


def test_a_shared_head_is_trained_by_the_other_task(tiny: Path, model: Path) -> None:
    content = one_task_alone(tiny)
    mood = content["tasks"]["sentiment"]
    content["tasks"] = {"sentiment": mood | {"share_head": "one"}, "again": mood | {"share_head": "one"}}
    assert notes_of(content) == ["again: gets no batch in 14 steps; its head is trained by sentiment alone"]
    content["schedule"]["tasks"] = ["again"]  # whoever of them the head is named after
    assert notes_of(content) == ["sentiment: gets no batch in 14 steps; its head is trained by again alone"]
    content["body"] = str(model)
    notes = notes_of(content)
    assert f"sentiment: starts with the head of {model}" in notes
    assert f"again: shares the head of sentiment, which starts with that of {model}" in notes


class Rare(Plan):
    """A long plan in which one task has a single window, between those that are looked at first."""

    steps = 5000
    epoch_ends = phase_ends = (5000,)

    def window(self, step: int) -> Window:
        return Window(step, (Part("rare" if step == 1234 else "often", 0, None),))  # type: ignore[arg-type]


def test_a_task_with_a_single_batch_in_a_long_plan_is_fed(tiny: Path) -> None:
    content = content_of(tiny)
    mood = content["tasks"]["sentiment"]
    content["tasks"] = {"often": mood, "rare": mood, "never": mood}
    assert untrained(parse_recipe(content, "rare"), Rare()) == ["never"]


def test_tasks_of_the_body_that_the_recipe_does_not_name(tiny: Path, model: Path) -> None:
    content = content_of(tiny, body=str(model))
    assert not [note for note in notes_of(content) if "does not name" in note]
    content["tasks"] = {"mood": content["tasks"]["sentiment"]}
    dropped = [note for note in notes_of(content) if "does not name" in note]
    assert len(dropped) == 1
    assert dropped[0].startswith(f"{model} also has the tasks sentiment, paraphrase, similarity, which this recipe")
    assert "add [tasks.sentiment], [tasks.paraphrase], [tasks.similarity] to the recipe" in dropped[0]


def test_an_adopted_head_on_other_vectors_says_so(tiny: Path, model: Path) -> None:
    content = content_of(tiny, body=str(model))
    content["tasks"]["sentiment"]["pooling"] = "mean"
    notes = notes_of(content)
    assert f"sentiment: starts with the head of {model}, which was trained with another pooling" in notes
    assert f"similarity: starts with the head of {model}" in notes


DISABLED: dict[str, tuple[dict[str, Any], int | None, str | None]] = {
    "patience and a budget": ({"patience": 2, "epochs": 9}, 8, "patience: has no effect with --budget"),
    "patience alone": ({"patience": 2, "epochs": 9}, None, None),
    "patience that cannot run out": ({"patience": 2, "epochs": 3}, None, "cannot occur before the end of a run with 3"),
    "patience that can": ({"patience": 1, "epochs": 3}, None, None),
    "warm-up that a budget scales away": ({}, 1, "optimizer.warmup: has no effect, because --budget scales its 2"),
    "warm-up that is too long": (
        {"optimizer": {"warmup": 500}},
        None,
        "optimizer.warmup: 500 steps do not fit into the run, which has 10; it is reduced to 9",
    ),
    "a schedule that every phase replaces": (
        {"schedule": "sequential", "phases": [{"epochs": 2, "schedule": "batch-round-robin"}]},
        None,
        "schedule: has no effect, because every phase sets its own",
    ),
    "a schedule that one phase keeps": (
        {
            "schedule": "sequential",
            "phases": [{"epochs": 1, "schedule": "batch-round-robin"}, {"epochs": 1}],
        },
        None,
        None,
    ),
    "a rate that every phase replaces": (
        {"phases": [{"epochs": 2, "lr": 1e-3}]},
        None,
        "optimizer.lr: has no effect, because every phase sets its own",
    ),
    "recomputing under a frozen body": (
        {"trainable": "frozen", "optimizer": {"gradient_checkpointing": True}},
        None,
        "optimizer.gradient_checkpointing: has no effect, because the body is frozen",
    ),
}


@pytest.mark.parametrize(("changes", "steps", "note"), DISABLED.values(), ids=DISABLED)
def test_a_key_that_does_nothing_is_said(
    tiny: Path, changes: dict[str, Any], steps: int | None, note: str | None
) -> None:
    found = notes_of(content_of(tiny, **changes), steps)
    if note is None:
        assert found == []
    else:
        assert [one for one in found if note in one], found


def test_temperatures_need_classes(tiny: Path) -> None:
    content = content_of(tiny, calibrate=True)
    assert notes_of(content) == []
    content["tasks"] = {"similarity": content["tasks"]["similarity"]}
    assert notes_of(content) == ["calibrate: has no effect, because no task has classes"]


def test_a_flag_and_a_setting_of_the_same_key() -> None:
    with pytest.raises(UserError, match="--set seed=3: --seed 4 sets the same key; remove one"):
        load_recipe("starter", settings=["seed=3"], seed=4)
    assert load_recipe("starter", settings=["seed=3"]).seed == 3
