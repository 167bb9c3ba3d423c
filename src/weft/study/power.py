"""Estimates the minimum detectable difference of a claim before any run is trained.

The standard error of a difference is that of `statistics`, with assumed instead of measured parts: a standard deviation
of SEED_SD over seeds, COMMON of whose variance is common to both arms with a seed, a score of SCORE, and the
correlations of what two runs get right on the same dev rows: BETWEEN runs of different arms and seeds, WITHIN one arm,
and between arms with the SAME_SEED. The variance v of one score over rows is p (1 - p) / n for a share of n rows, and
(1 - r^2)^2 / n for a correlation:

    error**2 = 2 SEED_SD**2 (1 - COMMON) / seeds  +  2 v (WITHIN - BETWEEN + interaction / seeds)
    interaction = 1 - WITHIN - SAME_SEED + BETWEEN

The estimate is the median of what such studies report.
"""

import math
from collections.abc import Mapping

from scipy import stats

from weft.kinds.metrics import METRICS, overall
from weft.recipes.library import library
from weft.study.format import Claim
from weft.study.plan import PlannedArm, StudyPlan
from weft.study.statistics import LEVEL, Estimate, satterthwaite

SEED_SD = 0.01
SCORE = 0.7
COMMON = 0.5
BETWEEN = 0.525
WITHIN = 0.575
SAME_SEED = 0.66
INTERACTION = 1 - WITHIN - SAME_SEED + BETWEEN
ASSUMED = (
    f"minimum detectable differences (power 80 %) assume a standard deviation of {SEED_SD:g} over seeds, half of it in "
    f"variance common to both arms, scores of {SCORE:g}, and a correlation of {SAME_SEED:g} between the answers of "
    "both arms with the same seed; for arms that differ little it is smaller, where seeds vary more, it is larger"
)


def detectable(plan: StudyPlan, claim: Claim) -> float | None:
    """Estimate the minimum detectable difference; None for one seed, or a metric without an upper bound."""
    arm, seeds = plan.arms[claim.better], len(plan.study.seeds)
    over_rows = _variance(arm, claim.metric, arm.dev_rows)
    if over_rows is None or seeds < 2:
        return None
    of_seed = 2 * SEED_SD**2 * (1 - COMMON)  # the variance of the difference of one seed
    if claim.on == "gap":  # every seed samples its own train rows
        over_train = _variance(arm, claim.metric, dict.fromkeys(arm.dev_rows, arm.recipe.log.train_rows))
        assert over_train is not None, "the same metric has a variance on dev rows"
        of_seed += 2 * over_train * (1 - SAME_SEED)
    squared = of_seed / seeds + 2 * over_rows * (WITHIN - BETWEEN + INTERACTION / seeds)
    estimated = (of_seed + 2 * over_rows * INTERACTION) / seeds  # the part that is estimated from few seeds
    freedom = satterthwaite(squared, estimated, seeds)
    typical = squared * float(stats.chi2.median(freedom)) / freedom  # few seeds underestimate more often than not
    return Estimate(0.0, math.sqrt(typical), freedom).smallest(LEVEL / len(plan.study.claims))


def _variance(arm: PlannedArm, metric: str, rows: dict[str, int]) -> float | None:
    """Variance over rows of one run's score; None for a metric without an upper bound."""
    if metric == "overall":
        parts = []
        for task, names in arm.metrics.items():
            own = _variance(arm, f"{task}.{names[0]}", rows)
            if own is None:
                return None
            parts.append(own / 4 if METRICS[names[0]].is_correlation else own)  # it counts as (1 + r) / 2
        return sum(parts) / len(parts) ** 2
    task, _, name = metric.partition(".")
    entry = METRICS[name]
    if math.isinf(entry.range[1]):
        return None
    return ((1 - SCORE**2) ** 2 if entry.is_correlation else SCORE * (1 - SCORE)) / rows[task]


def published_effect(plan: StudyPlan, claim: Claim) -> float | None:
    """Return the difference between the published dev scores of both arms; None if they are not published."""
    if claim.on == "gap":
        return None
    better, worse = (_published(plan, arm, claim.metric) for arm in (claim.better, claim.worse))
    return None if better is None or worse is None else better - worse


def _published(plan: StudyPlan, name: str, metric: str) -> float | None:
    """Return the published score of an arm: tables of the reports have the primary metric of each task."""
    row, primary = plan.study.arms[name].published, {task: own[0] for task, own in plan.arms[name].metrics.items()}
    published = None if row is None else library()[row].published
    return None if published is None else published_score(published.dev, primary, metric)


def published_score(dev: Mapping[str, float], primary: dict[str, str], metric: str) -> float | None:
    """Return a metric of published dev scores, which are those of the `primary` metric of each task."""
    scores = {task: {primary[task]: value} for task, value in dev.items() if task in primary}
    if metric == "overall":
        return overall(scores, primary) if set(scores) == set(primary) else None
    task, _, own = metric.partition(".")
    return scores.get(task, {}).get(own)
