"""How sure a mean over a few seeds is, and what of it is luck.

Two things were drawn: the S seeds of an arm, and the dev rows. The error of a difference of two arms has a part of
each:

    error**2 = sum over arms of (s**2 / S - c**2)  +  b**2

s is the spread of an arm's scores over its seeds. The bootstrap over S seeds has the variance (S - 1) / S times
s**2 / S, so with three seeds it sees a third too little; this is that bootstrap, put right. Each arm's seeds are drawn
by themselves: the same seed in two arms is two different runs. If it makes them alike, the error is smaller than said.

b is the spread of the difference when the dev rows are drawn again, the same rows for both arms and all seeds
(`bootstrap.ROUNDS` times). What a seed does to single rows is in s as well as in b: c**2 takes it out of one of them,
b_s being the spread of one seed's score, and b_m that of the arm's mean, when rows are drawn again:

    c**2 = (mean of b_s**2 - b_m**2) / (S - 1)

s is known from S numbers only, so intervals are those of Student's t, with the degrees of freedom that Satterthwaite's
rule gives to such a sum: few where the seeds are all that matters, more the more the rows do. The interval of a score
(not of a difference) is computed on a scale without bounds, so that it stays within what the metric can be.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.special import expit

from weft.evaluation import bootstrap
from weft.study.outcomes import Measured, Numbers

LEVEL = 0.05
POWER = 0.8
MANY = 1e6
"""degrees of freedom at which Student's t is the normal distribution"""


@dataclass(frozen=True)
class Estimate:
    """A mean, or a difference of two, with its standard error and degrees of freedom."""

    value: float
    error: float
    freedom: float

    @property
    def interval(self) -> tuple[float, float]:
        """95 %"""
        return self.value - self._reach, self.value + self._reach

    @property
    def _reach(self) -> float:
        return float(stats.t.ppf(1 - LEVEL / 2, self.freedom)) * self.error

    def within(self, low: float, high: float) -> tuple[float, float]:
        """95 % of a score that lies between `low` and `high`, so that the interval does too.

        It is Student's t on a scale without bounds: log((x - low) / (high - x)), which for a correlation is twice
        Fisher's z; log(x - low) where there is no upper bound. The standard error there is this one times the slope.
        """
        below, above = self.value - low, high - self.value
        if below <= 0 or above <= 0:  # on a bound the slope is infinite
            return max(self.interval[0], low), min(self.interval[1], high)
        if math.isinf(high):
            ends = [low + below * math.exp(end / below) for end in (-self._reach, self._reach)]
        else:
            middle, slope = math.log(below / above), (high - low) / (below * above)
            ends = [low + (high - low) * float(expit(middle + slope * end)) for end in (-self._reach, self._reach)]
        return ends[0], ends[1]

    def p(self, null: float) -> float:
        """How likely a value so far from `null`, on either side, is if the truth is `null`."""
        return float(2 * stats.t.sf(abs(self.value - null) / self.error, self.freedom))

    def smallest(self, level: float) -> float:
        """The true difference that such a study finds, at this level, four times out of five."""
        quantiles = stats.t.ppf([1 - level / 2, POWER], self.freedom)
        return float(quantiles.sum() * self.error)


def estimate(measured: Measured) -> Estimate | None:
    """The mean over seeds; None where nothing can be said: one seed, an undefined score, or no spread at all."""
    return _estimate(float(measured.values.mean()), [measured], measured.resampled.mean(axis=1))


def difference(better: Measured, worse: Measured) -> Estimate | None:
    """The first minus the second, on the same rows."""
    of_rows = better.resampled.mean(axis=1) - worse.resampled.mean(axis=1)
    return _estimate(gap(better, worse), [better, worse], of_rows)


def gap(better: Measured, worse: Measured) -> float:
    """The same without a word on how sure it is."""
    return float(better.values.mean() - worse.values.mean())


def _estimate(value: float, arms: Sequence[Measured], resampled: Numbers) -> Estimate | None:
    """`resampled` [rounds] is the value on every resample."""
    if min(len(arm.seeds) for arm in arms) < 2 or not np.isfinite(value):
        return None
    defined = np.isfinite(resampled)  # a resample of few rows may leave a score undefined
    if defined.sum() < bootstrap.DEFINED * len(resampled):
        return None
    of_rows = float(resampled[defined].var(ddof=1))
    of_seeds = [float(arm.values.var(ddof=1)) / len(arm.seeds) for arm in arms]
    in_both = sum(_counted_twice(arm.resampled[defined]) for arm in arms)
    error = max(sum(of_seeds) + of_rows - in_both, sum(of_seeds), of_rows)
    if error <= 0:
        return None
    uncertain = sum(part**2 / (len(arm.seeds) - 1) for part, arm in zip(of_seeds, arms, strict=True))
    return Estimate(value, float(np.sqrt(error)), min(error**2 / uncertain, MANY) if uncertain > 0 else MANY)


def _counted_twice(resampled: Numbers) -> float:
    """c**2 of an arm, from its scores [rounds, seeds] on every resample."""
    seeds = int(resampled.shape[1])
    of_one, of_mean = float(resampled.var(axis=0, ddof=1).mean()), float(resampled.mean(axis=1).var(ddof=1))
    return max(0.0, of_one - of_mean) / (seeds - 1)


def holm(ps: Sequence[float]) -> list[float]:
    """Each p after Holm's correction for asking so many questions at once, in the order given."""
    adjusted = [0.0] * len(ps)
    highest = 0.0
    for rank, place in enumerate(np.argsort(np.array(ps), kind="stable")):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[place]))
        adjusted[int(place)] = highest
    return adjusted
