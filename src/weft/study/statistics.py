"""How sure a mean over a few seeds is, and what of it is luck.

Two things were drawn: the S seeds, and the dev rows. The error of a mean over both has a part of each:

    error**2 = s**2 / S  +  b**2  -  c**2

s is the spread of the seeds' scores. The bootstrap over S seeds has the variance (S - 1) / S times s**2 / S, so with three
seeds it sees a third too little; this is that bootstrap, put right. b is the spread of the mean over seeds when the dev
rows are drawn again, the same rows for both arms and all seeds (`bootstrap.ROUNDS` times). What a seed does to single
rows is in both: c**2 takes it out of one of them, b_s being the spread of one seed's score when rows are drawn again:

    c**2 = (mean of b_s**2 - b**2) / (S - 1)

s is known from S numbers only, so intervals are those of Student's t, with the degrees of freedom that Satterthwaite's rule
gives to such a sum: S - 1 where the seeds are all that matters, more the more the rows do.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from weft.evaluation import bootstrap
from weft.study.outcomes import Measured, Numbers

LEVEL = 0.05
POWER = 0.8


@dataclass(frozen=True)
class Estimate:
    """A mean, or a difference of two, with its standard error and degrees of freedom."""

    value: float
    error: float
    freedom: float

    @property
    def interval(self) -> tuple[float, float]:
        """95 %"""
        reach = float(stats.t.ppf(1 - LEVEL / 2, self.freedom)) * self.error
        return self.value - reach, self.value + reach

    def p(self, null: float) -> float:
        """How likely a value so far from `null`, on either side, is if the truth is `null`."""
        return float(2 * stats.t.sf(abs(self.value - null) / self.error, self.freedom))

    def smallest(self, level: float) -> float:
        """The true difference that such a study finds, at this level, four times out of five."""
        quantiles = stats.t.ppf([1 - level / 2, POWER], self.freedom)
        return float(quantiles.sum() * self.error)


def estimate(measured: Measured) -> Estimate | None:
    """The mean over seeds; None where nothing can be said: one seed, an undefined score, or no spread at all."""
    return _estimate(measured.values, measured.resampled)


def difference(better: Measured, worse: Measured) -> Estimate | None:
    """The first minus the second, seed by seed and on the same rows."""
    seeds = common(better, worse)
    one, two = better.of(seeds), worse.of(seeds)
    return _estimate(one.values - two.values, one.resampled - two.resampled)


def gap(better: Measured, worse: Measured) -> float:
    """The same without a word on how sure it is; NaN where there is no seed that both have."""
    seeds = common(better, worse)
    return float((better.of(seeds).values - worse.of(seeds).values).mean()) if seeds else float("nan")


def common(one: Measured, two: Measured) -> tuple[int, ...]:
    """The seeds that both have."""
    return tuple(seed for seed in one.seeds if seed in two.seeds)


def _estimate(values: Numbers, resampled: Numbers) -> Estimate | None:
    count = len(values)
    if count < 2 or not np.isfinite(values).all():
        return None
    drawn = resampled[np.isfinite(resampled).all(axis=1)]  # a resample of few rows may leave a score undefined
    if len(drawn) < bootstrap.DEFINED * len(resampled):
        return None
    of_seeds = float(values.var(ddof=1)) / count
    of_rows = float(drawn.mean(axis=1).var(ddof=1))
    in_both = (float(drawn.var(axis=0, ddof=1).mean()) - of_rows) / (count - 1)
    total = max(of_seeds + of_rows - max(in_both, 0.0), of_seeds, of_rows)
    if total <= 0:
        return None
    # no spread between seeds is no reason to trust the seeds: then the rows alone decide, as in a normal interval
    freedom = (count - 1) * (total / of_seeds) ** 2 if of_seeds > 0 else float("inf")
    return Estimate(float(values.mean()), float(np.sqrt(total)), min(freedom, 1e6))


def holm(ps: Sequence[float]) -> list[float]:
    """Each p after Holm's correction for asking so many questions at once, in the order given."""
    adjusted = [0.0] * len(ps)
    highest = 0.0
    for rank, place in enumerate(np.argsort(np.array(ps), kind="stable")):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[place]))
        adjusted[int(place)] = highest
    return adjusted
