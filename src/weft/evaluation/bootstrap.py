"""How far a score would move if the dev rows had been drawn again.

The percentile bootstrap: rows are drawn with replacement `ROUNDS` times, and the middle 95 % of the scores is the
interval. All draws for the same purpose and number of rows are equal, so two models scored on the same rows are
compared on the same resamples: the difference of their `resampled` arrays is the paired bootstrap. It says nothing
about other seeds or other data.
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
"""a smaller share of resamples on which a score is defined gives no interval"""
Resampled = NDArray[np.float64]
"""[rounds] a score on each resample; NaN where it is undefined"""


@dataclass(frozen=True)
class Interval:
    low: float
    high: float


@dataclass(frozen=True)
class PairedDifference:
    """The second of two models against the first, on the same rows; more is better for the second."""

    value: float
    interval: Interval | None
    ahead: float
    """share of resamples in which the second is ahead"""

    @property
    def is_clear(self) -> bool:
        """whether the interval leaves out zero"""
        return self.interval is not None and (self.interval.low > 0 or self.interval.high < 0)


def draws(rows: int, purpose: str, rounds: int | None = None) -> Iterator[Counts]:
    """How often each row is drawn, round by round; `ROUNDS` of them unless said."""
    draw = generator(0, "bootstrap", purpose, rows)
    for _ in range(ROUNDS if rounds is None else rounds):
        yield np.bincount(draw.integers(rows, size=rows), minlength=rows).astype(np.float64)


def resampled(
    names: Sequence[str], truth: Truth, predictions: Predictions, purpose: str, rounds: int | None = None
) -> dict[str, Resampled]:
    """The named metrics on every resample; `purpose` is the task's name, so that tasks are drawn independently."""
    forms = {name: METRICS[name].weighted(truth, predictions) for name in names}
    scores = [[form(counts) for form in forms.values()] for counts in draws(len(truth), purpose, rounds)]
    return dict(zip(forms, np.array(scores, dtype=np.float64).reshape(-1, len(forms)).T, strict=True))


def interval(values: Resampled, share: float = 0.95) -> Interval | None:
    """The middle `share` of the values; None where too many of them are undefined."""
    defined = values[~np.isnan(values)]
    if len(defined) < DEFINED * len(values) or not len(defined):
        return None
    low, high = np.quantile(defined, [(1 - share) / 2, (1 + share) / 2])
    return Interval(float(low), float(high))


def resampled_overall(by_task: Mapping[str, Resampled], primary: Mapping[str, str]) -> Resampled:
    """The overall score round by round: the mean of the tasks' primary metrics, a correlation r as (1 + r) / 2."""
    parts = [(1 + by_task[t]) / 2 if METRICS[m].is_correlation else by_task[t] for t, m in primary.items()]
    total: Resampled = np.mean(parts, axis=0)
    return total


def difference(first: Resampled, second: Resampled, value: float, *, lower_is_better: bool = False) -> PairedDifference:
    """Two models' scores on the same resamples; `value` is second - first on the rows themselves."""
    sign = -1.0 if lower_is_better else 1.0
    gaps = sign * (second - first)
    defined = gaps[~np.isnan(gaps)]
    ahead = float(((defined > 0) + 0.5 * (defined == 0)).mean()) if len(defined) else float("nan")
    return PairedDifference(sign * value, interval(gaps), ahead)


def paired(
    name: str, truth: Truth, first: Predictions, second: Predictions, purpose: str, rounds: int | None = None
) -> PairedDifference:
    """How much better the second predictions are than the first, by one metric."""
    one, two = (resampled([name], truth, p, purpose, rounds)[name] for p in (first, second))
    metric = METRICS[name]
    value = metric.compute(truth, second) - metric.compute(truth, first)
    return difference(one, two, value, lower_is_better=metric.lower_is_better)
