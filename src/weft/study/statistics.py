"""Standard errors, intervals and p-values of means over a few seeds, and of differences between arms.

Two things are sampled: the S seeds of an arm, and the dev rows. The squared standard error of a mean is the sum of both
contributions:

    error**2 = s**2 / S - c**2 + b**2

s is the standard deviation of the scores over the seeds. The bootstrap over S seeds has the variance (S - 1) / S times
s**2 / S, so with three seeds it underestimates the variance by a third; s**2 / S corrects this bias.

b is the standard deviation of the mean over `bootstrap.ROUNDS` resamples of the dev rows, the same rows for all seeds.
The interaction of seeds and rows contributes to both s and b; c**2 removes it from one of them. b_s is the standard
deviation of one seed's score over the resamples, b that of the mean:

    c**2 = (mean of b_s**2 - b**2) / (S - 1)

A difference between two arms is the mean of S differences, one per seed, on the same rows: both seeds and rows are
paired. A seed determines the initial heads, the order of the rows and the dropout masks of both arms, so part of its
effect is common to both and cancels. This holds whether that part is large or nothing, at a price of half of the
degrees of freedom.

s is estimated from S numbers only, so intervals use Student's t with degrees of freedom by Satterthwaite's
approximation: few if the variance between seeds dominates, more if the variance over rows does. The interval of a score
(not of a difference) is computed on an unbounded scale, so that it stays within the range of the metric.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.special import expit

from weft.evaluation import bootstrap
from weft.study.outcomes import Measured

LEVEL = 0.05
POWER = 0.8
MANY = 1e6
"""Degrees of freedom at which Student's t equals the normal distribution."""


@dataclass(frozen=True)
class Estimate:
    """A mean, or a difference of two means, with its standard error and degrees of freedom."""

    value: float
    error: float
    freedom: float

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval."""
        return self.value - self._reach, self.value + self._reach

    @property
    def _reach(self) -> float:
        return float(stats.t.ppf(1 - LEVEL / 2, self.freedom)) * self.error

    def within(self, low: float, high: float) -> tuple[float, float]:
        """Return the 95 % interval of a score with bounds; the interval stays between `low` and `high`.

        It is Student's t on an unbounded scale: log((x - low) / (high - x)), which for a correlation is twice
        Fisher's z, or log(x - low) without an upper bound. The standard error on that scale is `error` times the
        derivative of the transformation (delta method).
        """
        below, above = self.value - low, high - self.value
        if below <= 0 or above <= 0:  # the derivative is infinite at a bound
            return max(self.interval[0], low), min(self.interval[1], high)
        if math.isinf(high):
            ends = [low + below * math.exp(end / below) for end in (-self._reach, self._reach)]
        else:
            middle, slope = math.log(below / above), (high - low) / (below * above)
            ends = [low + (high - low) * float(expit(middle + slope * end)) for end in (-self._reach, self._reach)]
        return ends[0], ends[1]

    def p(self, null: float) -> float:
        """Return the two-sided p-value for the null hypothesis that the true value is `null`."""
        if self.error == 0:
            return 1.0 if self.value == null else 0.0
        return float(2 * stats.t.sf(abs(self.value - null) / self.error, self.freedom))

    def smallest(self, level: float) -> float:
        """Return the minimum detectable difference at this level, for a power of 80 %."""
        quantiles = stats.t.ppf([1 - level / 2, POWER], self.freedom)
        return float(quantiles.sum() * self.error)


def estimate(measured: Measured) -> Estimate | None:
    """Estimate the mean over seeds. Returns None for one seed, an undefined score or zero variance."""
    seeds, value = len(measured.seeds), float(measured.values.mean()) if measured.seeds else math.nan
    if seeds < 2 or not math.isfinite(value):
        return None
    defined = np.isfinite(measured.resampled).all(axis=1)  # a resample of few rows may leave a score undefined
    if defined.sum() < bootstrap.DEFINED * len(measured.resampled):
        return None
    resampled = measured.resampled[defined]
    of_seeds = float(measured.values.var(ddof=1)) / seeds
    of_rows, of_one_seed = float(resampled.mean(axis=1).var(ddof=1)), float(resampled.var(axis=0, ddof=1).mean())
    in_both = max(0.0, of_one_seed - of_rows) / (seeds - 1)
    squared = max(of_seeds + of_rows - in_both, of_seeds, of_rows)
    if squared <= 0:
        return None
    return Estimate(value, math.sqrt(squared), satterthwaite(squared, of_seeds, seeds))


def satterthwaite(squared: float, of_seeds: float, seeds: int) -> float:
    """Return the degrees of freedom of a squared error, of which the part `of_seeds` is estimated from a few seeds."""
    return min(squared**2 * (seeds - 1) / of_seeds**2, MANY) if of_seeds > 0 else MANY


def difference(better: Measured, worse: Measured) -> Estimate | None:
    """Estimate the mean over the common seeds of the first score minus the second, on the same rows."""
    found = better.minus(worse)
    if len(found.seeds) > 1 and not found.values.any() and not found.resampled.any():
        return Estimate(0.0, 0.0, MANY)  # with every seed both arms predict the same
    return estimate(found)


def gap(better: Measured, worse: Measured) -> float:
    """Return the mean difference over the common seeds without a standard error; NaN if there are none."""
    values = better.minus(worse).values
    return float(values.mean()) if len(values) else math.nan


def holm(ps: Sequence[float]) -> list[float]:
    """Correct p-values for multiple testing by Holm's method; the order is preserved."""
    adjusted = [0.0] * len(ps)
    highest = 0.0
    for rank, place in enumerate(np.argsort(np.array(ps), kind="stable")):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[place]))
        adjusted[int(place)] = highest
    return adjusted
