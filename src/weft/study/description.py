"""Describes a study before it runs: its runs, how long they should take, and what differences it can detect."""

from collections.abc import Iterator
from typing import Any

from weft.recipes.check import duration
from weft.study.format import Claim
from weft.study.plan import StudyPlan
from weft.study.power import ASSUMED, detectable, published_effect


def describe(plan: StudyPlan) -> Iterator[str]:
    """Describe the runs and their estimated duration, line by line."""
    study = plan.study
    seeds = ", ".join(map(str, study.seeds))
    yield f"{study.name}: {len(plan.arms)} arms x {len(study.seeds)} seeds ({seeds}), {study.budget} each"
    width = max(map(len, plan.arms))
    for arm in plan.arms.values():
        own = study.arms[arm.name]
        changed = [f"{key} = {_short(value)}" for key, value in own.changes.items()]
        changed += [f"taught by {', '.join(own.teachers)}"] if own.teachers else []
        changed += [f"{key} unset" for key in own.unset]
        cost = f"{arm.steps:,} steps, about {duration(arm.seconds)} per run"
        yield f"  {arm.name:<{width}}  {cost}  {', '.join(changed)}".rstrip()
        rows = [
            f"{seen.distinct:,} distinct of {seen.of:,} {task} ({seen.drawn:,} drawn)"
            for task, seen in arm.train_rows.items()
        ]
        yield f"  {'':<{width}}  train rows: {', '.join(rows)}"
    dev = {task: count for arm in plan.arms.values() for task, count in arm.dev_rows.items()}
    yield "evaluated once, at the end: " + ", ".join(f"{count:,} dev rows of {task}" for task, count in dev.items())
    for number, claim in enumerate(study.claims, start=1):
        yield f"claim {number}: {claim.text} ({claim.better} vs. {claim.worse}, {claim.metric})"
        yield f"  {_detectable(plan, claim)}"
    if study.claims:
        yield ASSUMED
    yield f"{len(plan.arms) * len(study.seeds)} runs, about {duration(plan.seconds)} in total on this machine"


def _detectable(plan: StudyPlan, claim: Claim) -> str:
    """Say what difference the study can detect, and how large the published one is."""
    least, published = detectable(plan, claim), published_effect(plan, claim)
    known = "not estimated for this metric or a single seed" if least is None else f"about {least:.3f}"
    beside = "" if published is None else f"; published difference {published:+.3f}"
    return f"minimum detectable difference: {known}{beside}"


def _short(value: Any) -> str:
    return str(value.get("name", value)) if isinstance(value, dict) else str(value)
