"""What a metric is for one kind of label: its value, its value with weighted rows, and its random baseline."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.data.labels import Targets
from weft.evaluation.counted import (
    Counts,
    FromConfusion,
    FromLabels,
    Numbers,
    counted_cells,
    expected_confusion,
)
from weft.evaluation.truth import Predictions, Truth, cells, decide
from weft.foundation.lazy import LazyFunctions

sk = LazyFunctions("sklearn.metrics")
stats = LazyFunctions("scipy.stats")

Weighted = Callable[[Counts], float]
"""a metric as a function of how often each row counts"""

BLOCK = 65536
"""rows counted at a time"""


@dataclass(frozen=True)
class Means:
    """A metric that follows from means over rows: many models and resamples at once are one matrix product."""

    columns: Callable[[Truth, Predictions], Numbers]
    """[n, k] what is averaged"""
    finish: Callable[[Numbers], Numbers]
    """[..., k] means -> [...] the metric"""

    def weighted(self, truth: Truth, predictions: Predictions) -> Weighted:
        columns = self.columns(truth, predictions)
        return lambda counts: float(self.finish(counts @ columns / counts.sum()))


@dataclass(frozen=True)
class Form:
    """A metric for one kind of label."""

    compute: Callable[[Truth, Predictions], float]
    """by the library that everybody checks against; NaN where it is undefined"""
    weighted: Callable[[Truth, Predictions], Weighted]
    """the same with every row counted several times"""
    random: Callable[[Truth], float]
    """expected of uniform random answers: any class, each label with a half, any number within the bounds"""
    means: Means | None = None
    """how to score many models at once, if the metric follows from means"""


@dataclass(frozen=True)
class Tally:
    """What metrics of decisions see: each pair of a true and a chosen class once, and how many rows have it.

    A large set is counted block by block: sklearn's working space is many times what a metric reads.
    """

    true: Targets
    chosen: NDArray[np.int64]
    rows: NDArray[np.int64] | None
    """None for multilabel, whose rows stand for themselves"""

    def of(self, metric: Callable[..., float], **settings: Any) -> float:
        return float(metric(self.true, self.chosen, sample_weight=self.rows, **settings))


def tally(truth: Truth, predictions: Predictions) -> Tally:
    targets = truth.targets
    if truth.kind == "multilabel":
        return Tally(targets, decide(predictions, targets), None)
    classes = predictions.shape[1]
    table = np.zeros(classes**2, dtype=np.int64)
    for start in range(0, len(targets), BLOCK):
        part = slice(start, start + BLOCK)
        table += np.bincount(cells(predictions[part], targets[part]), minlength=classes**2)
    seen = np.flatnonzero(table)
    return Tally(seen // classes, seen % classes, table[seen])


Library = Callable[[Tally, Truth], float]


def of_classes(
    library: Library, whole: FromConfusion, of_row: Callable[[Truth, Predictions], Numbers] | None = None
) -> Form:
    """A metric of the confusion matrix; `of_row` if it is also a mean over rows."""

    def weighted(truth: Truth, predictions: Predictions) -> Weighted:
        where, classes = cells(predictions, truth.targets), predictions.shape[1]
        return lambda counts: whole(counted_cells(where, classes, counts), truth.positive)

    return Form(
        compute=lambda truth, p: library(tally(truth, p), truth),
        weighted=weighted,
        random=lambda truth: whole(expected_confusion(truth.targets, truth.classes), truth.positive),
        means=None if of_row is None else _mean_of(of_row),
    )


def of_labels(library: Library, whole: FromLabels) -> Form:
    """A metric of multilabel answers that follows from each label's numbers of rows."""

    def weighted(truth: Truth, predictions: Predictions) -> Weighted:
        chosen = decide(predictions, truth.targets)
        sums = np.concatenate([chosen * truth.targets, chosen, truth.targets], axis=1).astype(np.float64)
        return lambda counts: whole(*np.split(counts @ sums, 3))

    def random(truth: Truth) -> float:
        true = truth.targets.sum(axis=0).astype(np.float64)
        return whole(true / 2, np.full(len(true), len(truth) / 2), true)

    return Form(lambda truth, p: library(tally(truth, p), truth), weighted, random)


def of_rows(
    compute: Callable[[Truth, Predictions], float],
    of_row: Callable[[Truth, Predictions], Numbers],
    random: Callable[[Truth], float],
) -> Form:
    """A metric that is a mean over rows."""
    means = _mean_of(of_row)
    return Form(compute, means.weighted, random, means)


def _mean_of(of_row: Callable[[Truth, Predictions], Numbers]) -> Means:
    return Means(lambda truth, p: of_row(truth, p)[:, None], lambda means: means[..., 0])


def _correlation(statistic: Callable[..., tuple[float, float]], truth: Truth, p: Predictions) -> float:
    """Undefined where one side is constant: NaN, which callers must not hide."""
    if np.ptp(truth.targets) == 0 or np.ptp(p) == 0:
        return float("nan")
    return float(statistic(truth.targets, p)[0])


def _moments(truth: Truth, predictions: Predictions) -> Numbers:
    """[n, 5] first and second moments, about the means so that squares of large numbers lose nothing."""
    y, p = truth.targets - truth.targets.mean(), predictions - predictions.mean()
    return np.stack([y, p, y * p, y * y, p * p], axis=1)


def _from_moments(means: Numbers) -> Numbers:
    """Pearson's r; NaN where one side is constant, up to rounding."""
    y, p, both, yy, pp = np.moveaxis(means, -1, 0)
    both, yy, pp = both - y * p, yy - y * y, pp - p * p
    tiny = 1e-12
    defined = (yy > tiny) & (pp > tiny)
    r: Numbers = both / np.sqrt(np.where(defined, yy * pp, 1.0))
    return np.where(defined, np.clip(r, -1.0, 1.0), np.nan)  # rounding may carry r past 1


_PEARSON = Means(_moments, _from_moments)


def pearson() -> Form:
    return Form(lambda truth, p: _correlation(stats.pearsonr, truth, p), _PEARSON.weighted, lambda _: 0.0, _PEARSON)


def spearman() -> Form:
    """Pearson's r of the ranks, which follow from the rows that were drawn."""

    def weighted(truth: Truth, predictions: Predictions) -> Weighted:
        sides = [_ranks(np.asarray(side, dtype=np.float64)) for side in (truth.targets, predictions)]

        def score(counts: Counts) -> float:
            y, p = (side(counts) for side in sides)
            total = counts.sum()
            y, p = y - counts @ y / total, p - counts @ p / total
            means = counts @ np.stack([y * p, y * y, p * p], axis=1) / total
            return float(_from_moments(np.concatenate([[0.0, 0.0], means])))

        return score

    return Form(lambda truth, p: _correlation(stats.spearmanr, truth, p), weighted, lambda _: 0.0)


def _ranks(values: Numbers) -> Callable[[Counts], Numbers]:
    """[n] the mean rank of each row's value among all rows, ties alike, every row counted as often as it was drawn."""
    _, group = np.unique(values, return_inverse=True)

    def ranks(counts: Counts) -> Numbers:
        sizes = np.bincount(group, weights=counts)
        middle: Numbers = np.cumsum(sizes) - (sizes - 1) / 2
        return middle[group]

    return ranks


def auc() -> Form:
    """For two classes; which of them is called positive does not matter. Undefined where only one class is there."""

    def compute(truth: Truth, p: Predictions) -> float:
        return float("nan") if np.ptp(truth.targets) == 0 else float(sk.roc_auc_score(truth.targets, p[:, 1]))

    def weighted(truth: Truth, p: Predictions) -> Weighted:
        """The rank-sum form: the share of pairs, one row of each class, that the scores put in the right order."""
        ranks, positive = _ranks(p[:, 1]), truth.targets == 1

        def score(counts: Counts) -> float:
            ones = counts[positive].sum()
            zeros = counts.sum() - ones
            if not (ones and zeros):
                return float("nan")
            return float((counts[positive] @ ranks(counts)[positive] - ones * (ones + 1) / 2) / (ones * zeros))

        return score

    return Form(compute, weighted, lambda _: 0.5)


def random_mse(truth: Truth) -> float:
    """Of numbers drawn evenly from the range of the labels; NaN where the range is not known."""
    if truth.bounds is None:
        return float("nan")
    low, high = truth.bounds
    return float(((truth.targets - (low + high) / 2) ** 2).mean() + (high - low) ** 2 / 12)
