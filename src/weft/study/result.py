"""Computes the content of study.json from the outcomes of the runs."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from weft.evaluation import bootstrap
from weft.kinds.metrics import METRICS, overall_range
from weft.recipes.library import library
from weft.runs.records import RunEnvironment
from weft.study.claims import Verdict, judge
from weft.study.outcomes import Measured, Outcomes
from weft.study.plan import PlannedArm, StudyPlan
from weft.study.records import (
    ArmCosts,
    ArmResult,
    ClaimResult,
    ConflictResult,
    CostResult,
    DifferenceResult,
    MetricResult,
    PublishedFigures,
    StudyResult,
)
from weft.study.statistics import difference, estimate, gap

CONTAMINATED = (
    "The packaged MiniLM-L6 was trained on 103,663 Quora duplicates and on NLI pairs, among others. Its paraphrase and "
    "similarity scores do not measure the effect of fine-tuning and are not comparable with those of BERT base."
)


def study_result(
    plan: StudyPlan,
    outcomes: Outcomes,
    failures: dict[str, str],
    environment: RunEnvironment,
    reused: dict[str, str] | None = None,
) -> StudyResult:
    """Return the content of study.json.

    `failures` maps ARM-SEED to why the run failed, `reused` to the run of another study that it is a copy of.
    """
    study = plan.study
    bodies = {arm.recipe.body for arm in plan.arms.values()}
    return StudyResult(
        name=study.name,
        about=study.about,
        finished=not failures and len(outcomes.runs) == len(plan.arms) * len(study.seeds),
        seeds=study.seeds,
        budget=study.budget.model_dump(exclude_none=True),
        baseline=study.baseline,
        dev_rows={task: rows for arm in plan.arms.values() for task, rows in arm.dev_rows.items()},
        set=study.set,
        resamples=bootstrap.ROUNDS,
        paired_seeds=True,
        claims=tuple(_claim(verdict, len(study.claims)) for verdict in judge(study.claims, outcomes)),
        arms={name: _arm(plan, arm, outcomes) for name, arm in plan.arms.items()},
        differences=tuple(_differences(plan, outcomes)),
        conflicts={name: found for name in plan.arms if (found := tuple(_conflicts(name, outcomes)))},
        failures=failures,
        caveats=(CONTAMINATED,) if "packaged:minilm-l6" in bodies else (),
        bodies=tuple(sorted(bodies)),
        reused=reused or {},
        environment=environment,
    )


def measured_metrics(plan: StudyPlan, arm: PlannedArm) -> list[str]:
    """Return each task's primary metric, the overall score, and the metrics of claims."""
    own = [f"{task}.{names[0]}" for task, names in arm.metrics.items()]
    asked = [claim.metric for claim in plan.study.claims if arm.name in (claim.better, claim.worse)]
    return list(dict.fromkeys([*own, *(["overall"] if len(own) > 1 else []), *asked]))


def _claim(verdict: Verdict, claims: int) -> ClaimResult:
    claim, own = verdict.claim, verdict.difference
    low, high = (None, None) if own is None else own.interval
    return ClaimResult(
        text=claim.text,
        number=claim.number,
        published_by=claim.published_by,
        verdict=verdict.word,
        why=verdict.why,
        better=claim.better,
        worse=claim.worse,
        metric=claim.metric,
        on=claim.on,
        margin=claim.margin,
        seeds=verdict.seeds,
        difference=None if own is None else own.value,
        low=low,
        high=high,
        standard_error=None if own is None else own.error,
        degrees_of_freedom=None if own is None else own.freedom,
        p=verdict.p,
        p_corrected=verdict.adjusted,
        claims_asked=claims,
        smallest_difference=verdict.smallest,
        at_most_cost=claim.at_most_cost,
        cost=None if claim.at_most_cost is None else claim.cost,
        cost_ratios=verdict.cost_ratios,
    )


def _arm(plan: StudyPlan, arm: PlannedArm, outcomes: Outcomes) -> ArmResult:
    study_arm = plan.study.arms[arm.name]
    seeds = outcomes.seeds(arm.name)
    name = study_arm.published
    published = library()[name].published if name is not None else None
    return ArmResult(
        changes=study_arm.changes,
        unset=study_arm.unset,
        tasks=tuple(arm.recipe.tasks),
        steps=arm.steps,
        train_rows=arm.train_rows,
        seeds=seeds,
        metrics={
            metric: _score(arm, metric, outcomes.measured(arm.name, metric))
            for metric in measured_metrics(plan, arm)
            if seeds
        },
        train={str(seed): outcomes.runs[arm.name, seed].train for seed in seeds},
        cost=ArmCosts(
            seconds=_cost(arm, "seconds", outcomes),
            cpu_seconds=_cost(arm, "cpu_seconds", outcomes),
            tokens=_cost(arm, "tokens", outcomes),
            peak_memory=_cost(arm, "peak_memory", outcomes),
        ),
        published=PublishedFigures(recipe=name, **published.figures()) if name and published else None,
        notes=tuple(arm.notes),
    )


def _cost(arm: PlannedArm, kind: str, outcomes: Outcomes) -> CostResult | None:
    seeds, costs = outcomes.seeds(arm.name), outcomes.cost(arm.name, kind)
    if not seeds or not np.isfinite(costs).all():
        return None
    return CostResult(mean=float(np.mean(costs)), seeds=dict(zip(map(str, seeds), costs.tolist(), strict=True)))


def _score(arm: PlannedArm, metric: str, measured: Measured) -> MetricResult:
    if metric == "overall":
        sign, bounds = 1.0, overall_range({task: names[0] for task, names in arm.metrics.items()})
    else:
        entry = METRICS[metric.split(".", 1)[1]]
        sign, bounds = (-1.0 if entry.lower_is_better else 1.0), entry.range
    own = estimate(measured)
    low, high = (None, None) if own is None else replace(own, value=sign * own.value).within(*bounds)
    values = (sign * measured.values).tolist()
    return MetricResult(
        mean=_known(float(np.mean(values))),
        low=low,
        high=high,
        seeds={str(seed): _known(value) for seed, value in zip(measured.seeds, values, strict=True)},
    )


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _differences(plan: StudyPlan, outcomes: Outcomes) -> Iterator[DifferenceResult]:
    """Compare every arm with the baseline, for the metrics that both have."""
    base = plan.arms[plan.study.baseline]
    for arm in plan.arms.values():
        if arm is base or not (outcomes.seeds(arm.name) and outcomes.seeds(base.name)):
            continue
        shared = set(measured_metrics(plan, base))
        for metric in measured_metrics(plan, arm):
            if metric in shared and (metric != "overall" or set(arm.metrics) == set(base.metrics)):
                one, two = (outcomes.measured(name, metric) for name in (arm.name, base.name))
                own = difference(one, two)
                low, high = (None, None) if own is None else own.interval
                yield DifferenceResult(
                    arm=arm.name,
                    metric=metric,
                    difference=_known(gap(one, two)),
                    low=low,
                    high=high,
                    standard_error=None if own is None else own.error,
                    degrees_of_freedom=None if own is None else own.freedom,
                    p=None if own is None else own.p(0.0),
                )


def _conflicts(arm: str, outcomes: Outcomes) -> Iterator[ConflictResult]:
    """Cosine similarity between the gradients of each pair of tasks, over the seeds of an arm."""
    logged = [outcomes.runs[arm, seed].conflicts for seed in outcomes.seeds(arm)]
    for pair in dict.fromkeys(pair for own in logged for pair in own):
        cosines = np.array([own[pair][0] for own in logged if pair in own])
        # every step has different rows, so only the variance between seeds counts
        own = estimate(Measured(tuple(range(len(cosines))), cosines, np.repeat(cosines[None], 2, axis=0)))
        low, high = own.within(-1.0, 1.0) if own is not None else (None, None)
        opposed = float(np.mean([own[pair][1] for own in logged if pair in own]))
        verdict = "undecided" if low is None or low <= 0 <= (high or 0.0) else "conflict" if low < 0 else "agree"
        yield ConflictResult(
            tasks=tuple(pair.split("|")),
            cosine=float(cosines.mean()),
            low=low,
            high=high,
            opposed=opposed,
            verdict=verdict,
        )
