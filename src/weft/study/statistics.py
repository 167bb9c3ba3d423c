"""Standard errors, intervals and p-values of means over a few seeds, and of differences between arms.

Two things are sampled: the S seeds of an arm, and the dev rows. The squared standard error of a difference between two
arms is the sum of both contributions:

    error**2 = sum over arms of (s**2 / S - c**2)  +  b**2

s is the standard deviation of an arm's scores over its seeds. The bootstrap over S seeds has the variance (S - 1) / S
times s**2 / S, so with three seeds it underestimates the variance by a third; s**2 / S corrects this bias. Seeds are
treated as independent between arms: the same seed in two arms is two different runs. If a shared seed makes the runs
similar, this standard error is an overestimate.

b is the standard deviation of the difference over `bootstrap.ROUNDS` resamples of the dev rows, the same rows for both
arms and all seeds. The interaction of seeds and rows contributes to both s and b; c**2 removes it from one of them. b_s
is the standard deviation of one seed's score over the resamples, b_m that of the arm's mean:

    c**2 = (mean of b_s**2 - b_m**2) / (S - 1)

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
from weft.study.outcomes import Measured, Numbers

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
        return float(2 * stats.t.sf(abs(self.value - null) / self.error, self.freedom))

    def smallest(self, level: float) -> float:
        """Return the minimum detectable difference at this level, for a power of 80 %."""
        quantiles = stats.t.ppf([1 - level / 2, POWER], self.freedom)
        return float(quantiles.sum() * self.error)


def estimate(measured: Measured) -> Estimate | None:
    """Estimate the mean over seeds. Returns None for one seed, an undefined score or zero variance."""
    return _estimate(float(measured.values.mean()), [measured], measured.resampled.mean(axis=1))


def difference(better: Measured, worse: Measured) -> Estimate | None:
    """Estimate the first mean minus the second, on the same rows."""
    of_rows = better.resampled.mean(axis=1) - worse.resampled.mean(axis=1)
    return _estimate(gap(better, worse), [better, worse], of_rows)


def gap(better: Measured, worse: Measured) -> float:
    """Return the difference of the means without a standard error."""
    return float(better.values.mean() - worse.values.mean())


def _estimate(value: float, arms: Sequence[Measured], resampled: Numbers) -> Estimate | None:
    """Estimate `value`, with `resampled` [rounds] its value on every resample."""
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
    """Return c**2 of an arm, from its scores [rounds, seeds] on every resample."""
    seeds = int(resampled.shape[1])
    of_one, of_mean = float(resampled.var(axis=0, ddof=1).mean()), float(resampled.mean(axis=1).var(ddof=1))
    return max(0.0, of_one - of_mean) / (seeds - 1)


def holm(ps: Sequence[float]) -> list[float]:
    """Correct p-values for multiple testing by Holm's method; the order is preserved."""
    adjusted = [0.0] * len(ps)
    highest = 0.0
    for rank, place in enumerate(np.argsort(np.array(ps), kind="stable")):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[place]))
        adjusted[int(place)] = highest
    return adjusted
