"""What in a recipe can never act: refused, or said aloud. An option is never accepted and ignored."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from weft.errors import UserError
from weft.recipe import Recipe
from weft.schedules.plan import Plan
from weft.types import Window
from weft.weighting.base import Weighting


def refuse_lonely_heads(recipe: Recipe) -> None:
    """A head that one task alone shares is a slip of the pen."""
    wanted = Counter(task.share_head for task in recipe.tasks.values())
    for name, task in recipe.tasks.items():
        if task.share_head is not None and wanted[task.share_head] == 1:
            raise UserError(f"tasks.{name}.share_head: no other task shares the head {task.share_head!r}")


def refuse_idle_methods(recipe: Recipe, plan: Plan, weighting: Weighting) -> None:
    """A method whose chance to act never comes."""
    mixed = any(len(window.tasks) > 1 for window in _some_windows(plan))
    schedules = ", ".join(dict.fromkeys(phase.schedule.name for phase in recipe.resolved_phases()))
    reason = (
        f"the steps of {schedules} hold one task each; choose a schedule that mixes tasks, such as batch-round-robin"
        if len(recipe.tasks) > 1
        else "there is only one task"
    )
    trains_body = any(mode.name != "frozen" for mode in recipe.modes())
    if recipe.surgery.name != "none":
        if not mixed:
            raise UserError(f"surgery: {recipe.surgery.name!r} combines the gradients of several tasks, but {reason}")
        if not trains_body:
            raise UserError(f"surgery: {recipe.surgery.name!r} works on the body's gradients, but the body is frozen")
    if weighting.idle_steps and (plan.steps <= weighting.idle_steps or len(recipe.tasks) == 1):
        why = "there is only one task" if len(recipe.tasks) == 1 else f"the run has {plan.steps}"
        raise UserError(
            f"weighting: {recipe.weighting.name!r} acts after {weighting.idle_steps} steps on several tasks, but {why}"
        )
    if not trains_body and (recipe.optimizer.layer_decay != 1 or recipe.optimizer.layer_factors is not None):
        raise UserError("optimizer: layer_decay and layer_factors scale the body's steps, but the body is frozen")
    if weighting.compares_tasks and not mixed:
        raise UserError(f"weighting: {recipe.weighting.name!r} compares the tasks of a step, but {reason}")
    if recipe.log.conflicts_every is not None and not (mixed and trains_body):
        why = reason if trains_body else "the body is frozen"
        raise UserError(f"log.conflicts_every: there can be no conflict to log: {why}")


def untrained(recipe: Recipe, plan: Plan) -> list[str]:
    """The tasks that never get a batch: left out by the schedule, or by a budget that is too small."""
    chosen = {phase.schedule.tasks for phase in recipe.resolved_phases()}
    scheduled = {task for tasks in chosen for task in tasks or recipe.tasks}
    missing = scheduled - {task for window in _some_windows(plan) for task in window.tasks}
    if missing:  # the evenly spaced windows of a long plan may have passed them by
        missing -= {task for step in range(plan.steps) for task in plan.window(step).tasks}
    return [task for task in recipe.tasks if task not in scheduled or task in missing]


def untrained_notes(tasks: Sequence[str], steps: int) -> list[str]:
    return [f"{task}: gets no batch in {steps:,} steps; its scores are those of an untrained head" for task in tasks]


def _some_windows(plan: Plan) -> list[Window]:
    """All windows of a short plan, and 500 that are evenly spaced over a long one."""
    steps = np.unique(np.linspace(0, plan.steps - 1, 500).astype(int))
    return [plan.window(int(step)) for step in steps]
