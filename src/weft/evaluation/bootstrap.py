"""Confidence intervals of scores by the percentile bootstrap over dev rows.

Rows are drawn with replacement `ROUNDS` times; the 2.5th and 97.5th percentiles of the scores are the interval. The
draws depend only on the purpose and the number of rows, so two models scored on the same rows are compared on the same
resamples: the difference of their `resampled` arrays is the paired bootstrap. The interval covers the sampling of rows,
not other seeds or other data.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.foundation.randomness import generator
from weft.kinds.counted import Counts
from weft.kinds.metrics import METRICS
from weft.kinds.truth import Predictions, Truth

ROUNDS = 1000
DEFINED = 0.95
"""minimum share of resamples with a defined score; below it there is no interval"""
Resampled = NDArray[np.float64]
"""[rounds] a score on each resample; NaN where it is undefined"""
Answered = tuple[Truth, Predictions]
"""predictions of a model, and what they are scored with: the truths of two models differ in decision thresholds only"""


@dataclass(frozen=True)
class Interval:
    """A confidence interval."""

    low: float
    high: float


@dataclass(frozen=True)
class PairedDifference:
    """The second model compared with the first, on the same rows; a positive value favours the second."""

    value: float
    """difference of the scores, positive if the second model is better"""
    interval: Interval | None
    """95 % interval of the difference; None if too few resamples define it"""
    ahead: float
    """share of resamples in which the second model is better; ties count as a half"""

    @property
    def is_clear(self) -> bool:
        """whether the interval excludes zero"""
        return self.interval is not None and (self.interval.low > 0 or self.interval.high < 0)


def draws(rows: int, purpose: str, rounds: int | None = None) -> Iterator[Counts]:
    """Yield the count of each row in each resample. `rounds` defaults to `ROUNDS`."""
    draw = generator(0, "bootstrap", purpose, rows)
    for _ in range(ROUNDS if rounds is None else rounds):
        yield np.bincount(draw.integers(rows, size=rows), minlength=rows).astype(np.float64)


def resampled(
    names: Sequence[str], truth: Truth, predictions: Predictions, purpose: str, rounds: int | None = None
) -> dict[str, Resampled]:
    """Compute metrics on every resample; `purpose` is the task's name, so that tasks are drawn independently."""
    forms = {name: METRICS[name].weighted(truth, predictions) for name in names}
    scores = [[form(counts) for form in forms.values()] for counts in draws(len(truth), purpose, rounds)]
    return dict(zip(forms, np.array(scores, dtype=np.float64).reshape(-1, len(forms)).T, strict=True))


def interval(values: Resampled, share: float = 0.95) -> Interval | None:
    """Return the central interval with this share of the values; None if too many values are undefined."""
    defined = values[~np.isnan(values)]
    if len(defined) < DEFINED * len(values) or not len(defined):
        return None
    low, high = np.quantile(defined, [(1 - share) / 2, (1 + share) / 2])
    return Interval(float(low), float(high))


def resampled_overall(by_task: Mapping[str, Resampled], primary: Mapping[str, str]) -> Resampled:
    """Return the overall score on every resample: the mean of primary metrics, a correlation r as (1 + r) / 2."""
    parts = [(1 + by_task[t]) / 2 if METRICS[m].is_correlation else by_task[t] for t, m in primary.items()]
    total: Resampled = np.mean(parts, axis=0)
    return total


def difference(first: Resampled, second: Resampled, value: float, *, lower_is_better: bool = False) -> PairedDifference:
    """Compare two models' scores on the same resamples; `value` is second - first on the original rows."""
    sign = -1.0 if lower_is_better else 1.0
    gaps = sign * (second - first)
    defined = gaps[~np.isnan(gaps)]
    ahead = float(((defined > 0) + 0.5 * (defined == 0)).mean()) if len(defined) else float("nan")
    return PairedDifference(sign * value, interval(gaps), ahead)


def paired(name: str, first: Answered, second: Answered, purpose: str, rounds: int | None = None) -> PairedDifference:
    """Compare the predictions of two models for the same rows on one metric."""
    one, two = (resampled([name], *answered, purpose, rounds)[name] for answered in (first, second))
    metric = METRICS[name]
    value = metric.compute(*second) - metric.compute(*first)
    return difference(one, two, value, lower_is_better=metric.lower_is_better)
