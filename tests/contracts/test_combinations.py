"""Every schedule with every weighting and every surgery: trains, or says why it cannot."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.contracts.registry import variants
from tests.tiny import recipe_content
from weft import UserError
from weft.build import assemble, build_plan, build_step
from weft.recipes.assembly import Assembly
from weft.recipes.recipe import Recipe, parse_recipe
from weft.schedules import ScheduleConfig
from weft.schedules.sources import separate
from weft.surgery import SurgeryConfig
from weft.weighting import WeightingConfig

ONE_TASK_STEPS = {"sequential", "independent", "epoch-round-robin", "capped", "proportional", "square-root", "annealed"}
COMPARING = {"mean", "random"}


@pytest.fixture(scope="module")
def base(tiny: Path) -> Assembly:
    return assemble(parse_recipe(recipe_content(tiny, epochs=3), "base"))


def recipe_of(tiny: Path, schedule: str, weighting: str, surgery: str, **changes: Any) -> Recipe:
    options: Any = weighting
    if weighting == "fixed":
        options = {"name": "fixed", "weights": {"sentiment": 0.1, "paraphrase": 1.0, "similarity": 0.2}}
    if weighting == "dwa":
        options = {"name": "dwa", "every": 1}
    content = recipe_content(tiny, epochs=3, schedule=schedule, weighting=options, surgery=surgery, **changes)
    return parse_recipe(content, "combination")


def reason(schedule: str, weighting: str, surgery: str) -> str | None:
    if schedule in ONE_TASK_STEPS and surgery != "none":
        return f"surgery: '{surgery}' combines the gradients of several tasks"
    if schedule in ONE_TASK_STEPS and weighting in COMPARING:
        return f"weighting: '{weighting}' compares the tasks of a step"
    return None


@pytest.mark.parametrize("schedule", variants(ScheduleConfig))
@pytest.mark.parametrize("surgery", variants(SurgeryConfig))
def test_every_triple(tiny: Path, base: Assembly, schedule: str, surgery: str) -> None:
    for weighting in variants(WeightingConfig):
        recipe = recipe_of(tiny, schedule, weighting, surgery)
        plan = build_plan(recipe, separate({name: len(task.train) for name, task in base.data.items()}), None)
        expected = reason(schedule, weighting, surgery)
        if expected:
            with pytest.raises(UserError) as error:
                build_step(recipe, base.data, base.network, plan, torch.device("cpu"), dict.fromkeys(recipe.tasks, 1.0))
            assert str(error.value).startswith(expected)
            assert "only one task;" in str(error.value)
            continue
        step = build_step(recipe, base.data, base.network, plan, torch.device("cpu"), dict.fromkeys(recipe.tasks, 1.0))
        base.network.train()
        for number in (0, plan.steps // 2, plan.steps - 1):
            report = step(plan.window(number), 1e-4)
            assert report.norm >= 0
            assert all(loss >= 0 for loss in report.losses.values())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"surgery": "pcgrad", "trainable": "frozen"}, "works on the body's gradients, but the body is frozen"),
        (
            {"log": {"conflicts_every": 1}, "schedule": "sequential"},
            "there are no gradient conflicts to log: each step of",
        ),
        (
            {"log": {"conflicts_every": 1}, "trainable": "frozen"},
            "there are no gradient conflicts to log: the body is frozen",
        ),
    ],
)
def test_methods_that_could_never_act(tiny: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        assemble(parse_recipe(recipe_content(tiny, **changes), "idle"))


def test_one_task_has_nothing_to_combine(tiny: Path) -> None:
    content = recipe_content(tiny, surgery="pcgrad")
    content["tasks"] = {"sentiment": content["tasks"]["sentiment"]}
    with pytest.raises(UserError, match="there is only one task"):
        assemble(parse_recipe(content, "single"))


def test_surgery_may_act_in_one_phase_alone(tiny: Path) -> None:
    phases = [{"epochs": 1, "schedule": "independent", "trainable": "frozen"}, {"epochs": 2}]
    made = assemble(parse_recipe(recipe_content(tiny, epochs=3, phases=phases, surgery="pcgrad"), "phases"))
    assert replace(made).step.methods.surgery is not None
