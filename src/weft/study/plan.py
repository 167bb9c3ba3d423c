"""Plans a study: resolves, checks and builds the recipe of every arm before training starts."""

import copy
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from weft.bodies.source import body_digest, find_body
from weft.build import assemble
from weft.foundation.atomic import sha256
from weft.foundation.content import Content, put, remove
from weft.foundation.errors import UserError
from weft.foundation.values import Part
from weft.kinds.metrics import choose_metrics
from weft.recipes.assembly import Assembly, fed_rows
from weft.recipes.check import estimate_scoring, estimate_seconds, times_seen
from weft.recipes.costs import BodyTokens
from weft.recipes.recipe import Recipe, find_recipe, parse_recipe, parse_setting, resolve
from weft.schedules.plan import Plan
from weft.study.format import Arm, FoundStudy, Study, StudyBudget
from weft.study.records import RowsSeen

SAMPLED = 2000
"""Windows of a plan that are sampled to convert a budget of examples or tokens to steps."""
LOOK = 256
"""Windows between checks whether every row was seen, so that long plans are not counted to their end."""


@dataclass(frozen=True)
class PlannedArm:
    """One arm, ready to train."""

    name: str
    recipe: Recipe
    steps: int
    train_rows: dict[str, RowsSeen]
    training: float
    """Estimated seconds for the steps of one run on this machine."""
    scoring: float
    """Estimated seconds for the evaluation of one run."""
    metrics: dict[str, tuple[str, ...]]
    """Metrics of each task that counts in the overall score, the primary metric first."""
    dev_rows: dict[str, int]
    dev_digest: dict[str, str]
    """Digest of the labels of each task's dev rows: equal if arms are evaluated on the same rows."""
    files: dict[str, str]
    """Input file -> SHA-256 digest of its content."""
    notes: list[str]

    @property
    def seconds(self) -> float:
        """Estimated seconds for one run on this machine."""
        return self.training + self.scoring


@dataclass(frozen=True)
class StudyPlan:
    """A resolved study and its arms."""

    study: Study
    """Resolved: every arm contains its whole recipe."""
    arms: dict[str, PlannedArm]
    device: str
    trust_code: bool

    @property
    def seconds(self) -> float:
        return len(self.study.seeds) * sum(arm.seconds for arm in self.arms.values())

    def runs(self) -> Iterator[tuple[PlannedArm, int]]:
        """Iterate over all runs seed by seed, so that an interrupted study has some seeds of every arm."""
        for seed in self.study.seeds:
            for arm in self.arms.values():
                yield arm, seed


def with_settings(study: Study, settings: Sequence[str]) -> Study:
    """Apply `--set a.b=value` to all arms; changes of an arm take precedence."""
    return study.model_copy(update={"set": study.set | dict(map(parse_setting, settings))})


def plan_study(
    source: FoundStudy,
    *,
    data_dir: Path | None = None,
    body: str | None = None,
    device: str = "auto",
    trust_code: bool = False,
) -> StudyPlan:
    """Resolve and build every arm. Raises UserError for anything in the study that cannot work."""
    study = source.study
    arms = {}
    for name, arm in study.arms.items():
        recipe, budget = arm_recipe(source, name, data_dir, body), arm.budget or study.budget
        # teachers that are arms do not exist yet, and change nothing that is planned
        built = recipe.model_copy(update={"distill": None}) if arm.teachers else recipe
        planned = _plan_arm(name, built, budget, arm.share, device, trust_code)
        arms[name] = replace(planned, recipe=recipe)
    _check_teachers(study, arms)
    _check_claims(study, arms)
    _check_rows(study, arms)
    data = {file: digest for arm in arms.values() for file, digest in arm.files.items()}
    bodies = {body: body_digest(find_body(body)) for body in {arm.recipe.body: None for arm in arms.values()}}
    for what, before, now in (("data or code files", study.data, data), ("bodies", study.bodies, bodies)):
        changed = [key for key in {**before, **now} if before.get(key) != now.get(key)]
        if before and changed:
            raise UserError(f"{study.name}: {what} have changed since it was started: {', '.join(changed)}")
    resolved = {
        name: arm.model_copy(update={"recipe": arms[name].recipe.content()}) for name, arm in study.arms.items()
    }
    found = {"arms": resolved, "data": data, "bodies": bodies, "full": None}
    return StudyPlan(study.model_copy(update=found), arms, device, trust_code)


def arm_recipe(source: FoundStudy, name: str, data_dir: Path | None = None, body: str | None = None) -> Recipe:
    """Return the recipe of an arm with the study's and the arm's changes, and with absolute paths."""
    study, arm = source.study, source.study.arms[name]
    where = f"arms.{name}"
    if isinstance(arm.recipe, dict):
        base, content = source.folder, copy.deepcopy(arm.recipe)
    else:
        said = arm.recipe or study.base
        assert said is not None, "the format requires one of them"
        beside = source.folder / said
        file = find_recipe(beside if beside.is_file() else said)
        base, content = file.folder, file.content
    _keep(content, arm, where)
    _change(content, study.set, where)
    for key in arm.unset:
        # in a resolved study, the recipes already lack the unset keys
        if not remove(content, key) and not study.data:
            raise UserError(f"{where}.unset: found {key!r}, but the recipe does not set it; remove it from `unset`")
    _change(content, arm.changes, where)
    if arm.teachers:
        put(content, "distill.teachers", list(arm.teachers))
    recipe = resolve(parse_recipe(content | {"name": name}, where), base, data_dir, body)
    for task, config in recipe.tasks.items():
        data = config.data
        if data.dev_fraction is not None and data.dev_seed is None and not config.auxiliary:
            raise UserError(
                f"{where}: tasks.{task}.data.dev_fraction: samples other dev rows for every seed, but a study compares "
                "all runs on the same rows; set `dev_seed` too, or a dev file instead"
            )
    return _named_teachers(recipe, arm, where)


def _named_teachers(recipe: Recipe, arm: Arm, where: str) -> Recipe:
    """Let `distill.teachers` name arms: their folders are known only when the study runs."""
    if not arm.teachers:
        return recipe
    assert recipe.distill is not None
    for task, config in recipe.tasks.items():
        if config.data.unlabelled is not None:
            raise UserError(f"{where}.teachers: tasks.{task}.data.unlabelled needs teachers that are folders, not arms")
    return recipe.model_copy(update={"distill": recipe.distill.model_copy(update={"teachers": arm.teachers})})


def job_recipe(plan: StudyPlan, arm: PlannedArm, seed: int, folder_of: Callable[[PlannedArm, int], Path]) -> Recipe:
    """Return the recipe of one run: the arm's, with the seed and with the folders of its teachers' runs."""
    update: dict[str, Any] = {"seed": seed}
    if teachers := plan.study.arms[arm.name].teachers:
        assert arm.recipe.distill is not None
        folders = tuple(str(folder_of(plan.arms[teacher], seed).resolve()) for teacher in teachers)
        update["distill"] = arm.recipe.distill.model_copy(update={"teachers": folders})
    return arm.recipe.model_copy(update=update)


def _change(content: Content, changes: Content, where: str) -> None:
    for key, value in changes.items():
        try:
            put(content, key, value)
        except ValueError as error:
            raise UserError(f"{where}: {key}: {error}") from None


def _keep(content: Content, arm: Arm, where: str) -> None:
    for task in arm.only or ():
        if task not in content["tasks"]:
            raise UserError(f"{where}.only: found {task!r}, expected some of {', '.join(content['tasks'])}")
    if arm.only is not None:
        content["tasks"] = {task: content["tasks"][task] for task in arm.only}


def _plan_arm(
    name: str, recipe: Recipe, budget: StudyBudget, share: float, device: str, trust_code: bool
) -> PlannedArm:
    try:
        steps = steps_of(recipe, budget.shared(share), device, trust_code)
        made = assemble(recipe, steps=steps, device=device, trust_code=trust_code)
    except UserError as error:
        raise UserError(f"arm {name}: {error}") from None
    dev = [{task: own.dev for task, own in made.data.items()}]
    compared = {task: own for task, own in made.data.items() if task not in recipe.auxiliary}
    return PlannedArm(
        name=name,
        recipe=recipe,
        steps=steps,
        train_rows=rows_seen(made.plan, {task: len(rows) for task, rows in fed_rows(made.data).items()}),
        training=estimate_seconds(made, BodyTokens.of(made.data, made.step), made.frozen_outputs(dev)),
        scoring=estimate_scoring(made.network, dev),
        metrics={task: choose_metrics(own.labels, recipe.tasks[task].metrics, task) for task, own in compared.items()},
        dev_rows={task: len(own.dev) for task, own in compared.items()},
        dev_digest={
            task: hashlib.sha256(own.labels.kind.flat(own.dev.targets).tobytes()).hexdigest()
            for task, own in compared.items()
        },
        files={
            str(path): sha256(path)
            for own in made.data.values()
            for path in (own.train.file.source, own.dev.file.source)
            if isinstance(path, Path)  # a study has no rows but those of files
        }
        | {source.file: source.sha256 for source in made.code.values()},
        notes=made.notes,
    )


def rows_seen(plan: Plan, sizes: dict[str, int]) -> dict[str, RowsSeen]:
    """Count the distinct rows that a plan reads; with a budget, rows may repeat before all were seen once."""
    seen = {task: np.zeros(size, dtype=bool) for task, size in sizes.items()}
    for step in range(plan.steps):
        if step % LOOK == 0 and all(own.all() for own in seen.values()):
            break
        for part in plan.window(step).parts:
            seen[part.task][part.rows] = True
    drawn = {task: round(times * sizes[task]) for task, times in times_seen(plan, sizes)}
    return {task: RowsSeen(sizes[task], int(own.sum()), drawn[task]) for task, own in seen.items()}


def steps_of(recipe: Recipe, budget: StudyBudget, device: str = "auto", trust_code: bool = False) -> int:
    """Convert a budget to optimizer steps, by the mean size of windows of the recipe's plan."""
    if budget.steps is not None:
        return budget.steps
    made = assemble(recipe, device=device, trust_code=trust_code)
    amount = budget.tokens or budget.examples
    assert amount is not None, "a budget has one unit"
    count = BodyTokens.of(made.data, made.step).of_parts if budget.tokens is not None else _rows
    return max(1, round(amount / per_step(made, count)))


def per_step(made: Assembly, count: Callable[[Sequence[Part]], float]) -> float:
    """Return the mean over windows of what `count` finds in their parts."""
    plan = made.plan
    steps = np.unique(np.linspace(0, plan.steps - 1, min(plan.steps, SAMPLED)).astype(int))
    windows = [plan.window(int(step)) for step in steps]
    return float(np.mean([count(window.parts) for window in windows]))


def _rows(parts: Sequence[Part]) -> float:
    """Number of examples: a row counts for every task that asks about it."""
    return sum(len(part.rows) for part in parts)


def _check_teachers(study: Study, arms: dict[str, PlannedArm]) -> None:
    """Require that every arm that teaches has a task of its student."""
    for name, arm in study.arms.items():
        own = arms[name].recipe.tasks
        for teacher in arm.teachers:
            theirs = arms[teacher].recipe.tasks
            if not set(own) & set(theirs):
                raise UserError(
                    f"{study.name}: arms.{name}.teachers: {teacher} has the tasks {', '.join(theirs)} and none of "
                    f"{name}'s ({', '.join(own)})"
                )


def _check_rows(study: Study, arms: dict[str, PlannedArm]) -> None:
    """Require the same dev rows in every arm: paired differences need them."""
    seen: dict[str, tuple[str, str]] = {}
    for arm in arms.values():
        for task, digest in arm.dev_digest.items():
            name, first = seen.setdefault(task, (arm.name, digest))
            if digest != first:
                raise UserError(
                    f"{study.name}: the dev rows of {task} differ between {name!r} and {arm.name!r}; "
                    "a study compares its arms on the same rows"
                )


def _check_claims(study: Study, arms: dict[str, PlannedArm]) -> None:
    """Require that both arms of a claim measure its metric."""
    for number, claim in enumerate(study.claims):
        for arm in (claim.better, claim.worse):
            metrics = arms[arm].metrics
            known = [f"{task}.{metric}" for task, names in metrics.items() for metric in names]
            if claim.metric not in (*known, "overall"):
                raise UserError(
                    f"{study.name}: claims.{number}.metric: found {claim.metric!r}, "
                    f"but arm {arm!r} measures {', '.join(known)} and overall"
                )
            if claim.on == "gap" and not arms[arm].recipe.log.train_rows:
                raise UserError(f"{study.name}: claims.{number}.on: arm {arm!r} needs log.train_rows above 0")
        if claim.metric == "overall" and set(arms[claim.better].metrics) != set(arms[claim.worse].metrics):
            raise UserError(f"{study.name}: claims.{number}.metric: overall needs the same tasks in both arms")
