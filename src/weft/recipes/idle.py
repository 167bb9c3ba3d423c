"""Settings without effect: rejected or noted. An option is never silently ignored."""

from collections.abc import Collection, Iterator
from itertools import pairwise

import numpy as np

from weft.foundation.errors import UserError
from weft.foundation.own_code import names_code
from weft.foundation.values import Window
from weft.kinds import KINDS
from weft.kinds.probability import ProbabilityKind
from weft.recipes.recipe import Recipe
from weft.schedules.plan import Plan
from weft.tasks.network import Network
from weft.tasks.store import head_owners
from weft.training.optimizer import OptimizerConfig
from weft.training.trainable import FrozenConfig
from weft.weighting.base import Weighting


def reject_idle_methods(recipe: Recipe, plan: Plan, weighting: Weighting) -> None:
    """Raise UserError for a method that can have no effect in this run."""
    asks = recipe.surgery.name != "none" or weighting.compares_tasks or recipe.log.conflicts_every is not None
    mixed = asks and mixes_tasks(plan)
    schedules = ", ".join(dict.fromkeys(phase.schedule.name for phase in recipe.resolved_phases()))
    reason = (
        f"each step of {schedules} has only one task; choose a schedule that mixes tasks, such as batch-round-robin"
        if len(recipe.tasks) > 1
        else "there is only one task"
    )
    trains_shared = _trains_shared(recipe)
    if recipe.surgery.name != "none":
        if not mixed:
            raise UserError(f"surgery: {recipe.surgery.name!r} combines the gradients of several tasks, but {reason}")
        if not trains_shared:
            raise UserError(f"surgery: {recipe.surgery.name!r} works on the body's gradients, but {_frozen(recipe)}")
    if recipe.average is not None:
        recipe.average.check(plan.steps)
    if weighting.idle_steps and (plan.steps <= weighting.idle_steps or len(recipe.tasks) == 1):
        why = "there is only one task" if len(recipe.tasks) == 1 else f"the run has {plan.steps}"
        raise UserError(
            f"weighting: {recipe.weighting.name!r} acts after {weighting.idle_steps} steps on several tasks, but {why}"
        )
    adapts = trains_shared or recipe.adapter is not None
    if not adapts and (recipe.optimizer.layer_decay != 1 or recipe.optimizer.layer_factors is not None):
        raise UserError("optimizer: layer_decay and layer_factors scale the body's steps, but the body is frozen")
    if weighting.compares_tasks and not mixed:
        raise UserError(f"weighting: {recipe.weighting.name!r} compares the tasks of a step, but {reason}")
    if recipe.log.conflicts_every is not None and not (mixed and trains_shared):
        why = reason if trains_shared else _frozen(recipe)
        raise UserError(f"log.conflicts_every: there are no gradient conflicts to log: {why}")


def mixes_tasks(plan: Plan) -> bool:
    """Return whether any step has several tasks."""
    return any(len(window.tasks) > 1 for window in _windows(plan))


def scheduled(recipe: Recipe) -> list[str]:
    """List the tasks that the schedule of any phase trains, in the recipe's order."""
    chosen = {task for phase in recipe.resolved_phases() for task in phase.schedule.chosen(recipe.tasks)}
    return [task for task in recipe.tasks if task in chosen]


def require_rows(recipe: Recipe, fed: Collection[str]) -> None:
    """Raise UserError if the schedule trains a task that has no rows to train on; those in `fed` have."""
    for name in scheduled(recipe):
        if name not in fed:
            raise UserError(
                f"tasks.{name}.data.train: is missing; name the file, or texts without labels (`unlabelled`) and a "
                "teacher with this task, or train other tasks only, with schedule.tasks"
            )


def untrained(recipe: Recipe, plan: Plan) -> list[str]:
    """List the tasks that get no batch, because of the schedule or of a too small budget."""
    waiting = set(scheduled(recipe))
    for window in _windows(plan):
        waiting.difference_update(window.tasks)
        if not waiting:
            break
    return [task for task in recipe.tasks if task not in scheduled(recipe) or task in waiting]


def untrained_notes(
    missed: Collection[str], steps: int, recipe: Recipe, network: Network, adopted: Collection[str]
) -> list[str]:
    """Notes about tasks without a batch. The heads of the `adopted` tasks come from a trained model."""
    return [
        f"{task}: gets no batch in {steps:,} steps; {_left_with(task, missed, recipe, network, adopted)}"
        for task in missed
    ]


def _left_with(task: str, missed: Collection[str], recipe: Recipe, network: Network, adopted: Collection[str]) -> str:
    """Explain which weights determine the scores of a task without a batch."""
    owners = head_owners(network, task)
    if not owners:
        return "its head has no weights, so its scores depend on the body alone"
    sharing = [other for other in recipe.tasks if other not in missed and owners <= head_owners(network, other)]
    if sharing:
        return f"its head is trained by {', '.join(sharing)} alone"
    if task in adopted:
        rest = "while the body under it changes" if _trains_shared(recipe) else "and so does the body"
        return f"its head stays as it is in {recipe.body}, {rest}"
    return "its scores are those of an untrained head"


def disabled_keys(recipe: Recipe, plan: Plan, warmup: int, *, budget: bool) -> list[str]:
    """Notes about keys that are set but have no effect in this run, because of a flag or of other keys.

    `warmup` is the number of warm-up steps after scaling by the budget.
    """
    found = []
    fields = type(recipe).model_fields
    scored = len([step for step in plan.evaluations if step > 0])
    if recipe.patience is not None and budget:
        found.append("patience: has no effect with --budget, which evaluates only at the end of the run")
    elif recipe.patience is not None and recipe.patience >= scored - 1:
        found.append(
            f"patience: has no effect, because {recipe.patience} evaluations without improvement cannot occur "
            f"before the end of a run with {scored}"
        )
    if recipe.dev_sample != fields["dev_sample"].default and budget:
        found.append("dev_sample: has no effect with --budget, which evaluates only at the end, on all dev rows")
    found += _warmup(recipe, plan, warmup)
    for key, is_set in (
        ("schedule", recipe.schedule != fields["schedule"].default),
        ("trainable", recipe.trainable != (FrozenConfig() if recipe.adapter else fields["trainable"].default)),
        ("optimizer.lr", recipe.optimizer.lr != OptimizerConfig().lr),
    ):
        own = [getattr(phase, key.rpartition(".")[2]) for phase in recipe.phases or ()]
        if is_set and own and None not in own:
            found.append(f"{key}: has no effect, because every phase sets its own")
    if recipe.calibrate and not any(isinstance(KINDS[task.kind], ProbabilityKind) for task in recipe.tasks.values()):
        found.append("calibrate: has no effect, because no task has classes")
    if recipe.code is not None and not names_code(recipe.content()):
        found.append("code: has no effect, because the recipe names no component by `use`")
    modes = recipe.modes()
    if recipe.body_dropout and recipe.adapter is None and all(m.name == "frozen" and not m.dropout for m in modes):
        found.append(
            "body_dropout: has no effect, because the body is frozen; "
            'trainable = { name = "frozen", dropout = true } applies it to a frozen body'
        )
    if any(mode.name == "layers" and mode.dropout and (mode.embeddings or 0 in mode.layers) for mode in modes):
        found.append("trainable.dropout: has no effect, because no layer below the trained ones is frozen")
    if recipe.optimizer.gradient_checkpointing and not _trains_shared(recipe) and recipe.adapter is None:
        found.append("optimizer.gradient_checkpointing: has no effect, because the body is frozen")
    return found


def _warmup(recipe: Recipe, plan: Plan, warmup: int) -> list[str]:
    wanted = recipe.optimizer.warmup
    if wanted and not warmup:
        return [f"optimizer.warmup: has no effect, because --budget scales its {wanted} steps to 0"]
    shortest = min(end - start for start, end in pairwise([0, *plan.phase_ends]))
    if warmup > shortest - 1:
        scaled = "" if warmup == wanted else f", scaled by --budget to {warmup},"
        length = f"a phase of {shortest} steps" if len(plan.phase_ends) > 1 else f"the run, which has {shortest}"
        return [f"optimizer.warmup: {wanted} steps{scaled} do not fit into {length}; it is reduced to {shortest - 1}"]
    return []


def _trains_shared(recipe: Recipe) -> bool:
    """Whether weights that all tasks share are trained: those of the body, or of a shared adapter."""
    shared_adapter = recipe.adapter is not None and not recipe.adapter.per_task
    return any(mode.name != "frozen" or (shared_adapter and mode.trains("adapter.")) for mode in recipe.modes())


def _frozen(recipe: Recipe) -> str:
    """Explain why no weights that all tasks share are trained."""
    own = "" if recipe.adapter is None else " and each task has an adapter of its own"
    return f"the body is frozen{own}"


def _windows(plan: Plan) -> Iterator[Window]:
    """All windows of a plan, evenly spaced ones first, so that a search ends early."""
    steps = np.unique(np.linspace(0, plan.steps - 1, 500).astype(int))
    yield from (plan.window(int(step)) for step in steps)
    if plan.steps > len(steps):
        yield from (plan.window(step) for step in range(plan.steps))
