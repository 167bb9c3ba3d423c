"""Builds a study that compares a multitask recipe with single-task training of each of its tasks."""

from collections.abc import Sequence
from pathlib import Path

from weft.build import assemble
from weft.foundation.content import Content
from weft.foundation.errors import UserError
from weft.recipes.check import duration
from weft.recipes.costs import BodyTokens
from weft.recipes.recipe import Recipe
from weft.study.format import Arm, Claim, FoundStudy, Study, StudyBudget
from weft.study.plan import StudyPlan, per_step, plan_study

SHARED = "shared"
LOGGED = 50
"""Number of steps of a run on which gradient conflicts are logged."""


def sharing_study(
    recipe: Recipe,
    *,
    seeds: Sequence[int],
    steps: int | None,
    tasks: Sequence[str] = (),
    max_seconds: float | None = None,
    device: str = "auto",
    trust_code: bool = False,
) -> FoundStudy:
    """Build a study of the recipe and, for each of `tasks`, one arm at equal steps and one at equal compute.

    At equal steps, a single-task body takes as many steps as the shared one. At equal compute, it reads as many tokens
    as the shared one reads of all tasks together. `tasks` defaults to all tasks. `max_seconds` scales the budget of
    every arm down by one factor, so that the estimated duration of the whole study stays within it.
    """
    if len(recipe.tasks) < 2:
        raise UserError(f"sharing: {recipe.name} has one task; expected at least two tasks that share a body")
    unknown = [task for task in tasks if task not in recipe.tasks]
    if unknown:
        raise UserError(f"--task {unknown[0]}: expected some of {', '.join(recipe.tasks)}")
    chosen = [task for task in recipe.tasks if task in tasks] or list(recipe.tasks)
    source = _study(recipe, chosen, seeds, steps, device, trust_code)
    if max_seconds is None:
        return source
    plan = plan_study(source, device=device, trust_code=trust_code)
    share = _affordable(plan, max_seconds)
    if share >= 1:
        return source
    return _study(recipe, chosen, seeds, int(share * plan.arms[SHARED].steps), device, trust_code)


def _affordable(plan: StudyPlan, seconds: float) -> float:
    """Return the share of a plan's steps that fits into `seconds`, by the plan's estimate."""
    scoring = len(plan.study.seeds) * sum(arm.scoring for arm in plan.arms.values())
    share = (seconds - scoring) / (plan.seconds - scoring)
    if share * plan.arms[SHARED].steps < 1:
        least = scoring + (plan.seconds - scoring) / plan.arms[SHARED].steps
        raise UserError(
            f"--max-time: evaluation and one step of {len(plan.arms)} arms x {len(plan.study.seeds)} seeds take about "
            f"{duration(least)}; increase it, or reduce the study with --task, --seeds or --set dev_rows=N"
        )
    return share


def _study(
    recipe: Recipe, tasks: Sequence[str], seeds: Sequence[int], steps: int | None, device: str, trust_code: bool
) -> FoundStudy:
    made = assemble(recipe, steps=steps, device=device, trust_code=trust_code)
    tokens = round(per_step(made, BodyTokens.of(made.data, made.step).of_parts) * made.plan.steps)
    mixed = any(
        len(made.plan.window(step).tasks) > 1 for step in range(0, made.plan.steps, max(1, made.plan.steps // 20))
    )
    every = {"log.conflicts_every": max(1, made.plan.steps // LOGGED)} if mixed else {}
    arms = {SHARED: Arm(recipe=recipe.content(), changes=every)}
    claims = []
    for task in tasks:
        metric = f"{task}.{made.network.task(task).metrics[0]}"
        for suffix, words, budget in (
            ("steps", "at equal steps", None),
            ("compute", "at equal compute", StudyBudget(tokens=tokens)),
        ):
            name = f"{task}-{suffix}"
            arms[name] = Arm(recipe=alone(recipe, task), budget=budget)
            text = f"{task} gains from the shared body {words}"
            claims.append(Claim(text=text, better=SHARED, worse=name, metric=metric))
    study = Study(
        name=f"sharing-{_plain(recipe.name)}",
        about="Compares one body for all tasks with one body per task, at equal steps and at equal compute (as many "
        "tokens as all tasks together). A difference above 0 is a gain from sharing, below 0 a loss. The time of the "
        "shared body includes the logging of gradient conflicts.",
        seeds=tuple(seeds),
        budget=StudyBudget(steps=made.plan.steps),
        baseline=SHARED,
        arms=arms,
        claims=tuple(claims),
    )
    return FoundStudy(study, Path())


def alone(recipe: Recipe, task: str) -> Content:
    """Return the recipe with one task, without surgery, weighting, schedules, shared heads and conflict logging."""
    content = recipe.content()
    own = {key: value for key, value in content["tasks"][task].items() if key != "share_head"}
    content |= {"name": task, "tasks": {task: own}, "schedule": {"name": "sequential"}}
    for key in ("surgery", "weighting"):
        content.pop(key, None)
    content["log"] = {key: value for key, value in content["log"].items() if not key.startswith("conflicts")}
    for phase in content.get("phases", ()):
        phase.pop("schedule", None)
    return content


def _plain(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in name)
