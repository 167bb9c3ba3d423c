"""What a metric is for one kind of label: its value, its value with weighted rows, and its random baseline."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.kinds.counted import (
    Counts,
    FromConfusion,
    FromLabels,
    Numbers,
    counted_cells,
    expected_confusion,
)
from weft.kinds.truth import Predictions, Targets, Truth

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

    def of(self, metric: str, **settings: Any) -> float:
        """scikit-learn's function of this name."""
        # imported when first needed: a model that only answers computes no metric
        function = getattr(import_module("sklearn.metrics"), metric)
        return float(function(self.true, self.chosen, sample_weight=self.rows, **settings))


Library = Callable[[Tally, Truth], float]
"""a metric of decisions, as scikit-learn has it"""


def library(metric: str, **settings: Any) -> Library:
    return lambda found, _: found.of(metric, **settings)


def averaged(metric: str, *, macro: bool = False) -> Library:
    """A scikit-learn metric of single classes: that of the positive class if there is one, else macro."""

    def score(found: Tally, truth: Truth) -> float:
        chosen = None if truth.positive is None or macro else [truth.positive]
        return found.of(metric, labels=chosen, average="macro", zero_division=0)

    return score


def balanced_accuracy(found: Tally, _: Truth) -> float:
    # balanced_accuracy_score itself warns of every class that is predicted but not there
    return found.of("recall_score", labels=np.unique(found.true), average="macro", zero_division=0)


def mcc(found: Tally, _: Truth) -> float:
    # of one class alone scikit-learn says 0, too, but warns
    return found.of("matthews_corrcoef") if len(np.union1d(found.true, found.chosen)) > 1 else 0.0


def all_right(truth: Truth, p: Predictions) -> Numbers:
    """[n] 1 where a row's answer is right, with every label of it."""
    right = (truth.kind.decide(p) == truth.targets).reshape(len(truth), -1)
    found: Numbers = right.all(axis=1).astype(np.float64)
    return found


def cells(truth: Truth, predictions: Predictions) -> NDArray[np.int64]:
    """[n] where each row stands in a confusion matrix, flat: true class times classes plus the chosen one."""
    found: NDArray[np.int64] = truth.targets * predictions.shape[1] + truth.kind.decide(predictions)
    return found


def tally_classes(truth: Truth, predictions: Predictions) -> Tally:
    classes = predictions.shape[1]
    table = np.zeros(classes**2, dtype=np.int64)
    for start in range(0, len(truth), BLOCK):
        part = np.arange(start, min(start + BLOCK, len(truth)))
        table += np.bincount(cells(truth.rows(part), predictions[part]), minlength=classes**2)
    seen = np.flatnonzero(table)
    return Tally(seen // classes, seen % classes, table[seen])


def tally_rows(truth: Truth, predictions: Predictions) -> Tally:
    """Every row by itself, for labels of which a row may have several."""
    return Tally(truth.targets, truth.kind.decide(predictions).astype(np.int64, copy=False), None)


def of_decisions(metric: str) -> Callable[[Truth, Predictions], float]:
    """scikit-learn's metric of this name, of rows that may have several labels."""
    return lambda truth, p: tally_rows(truth, p).of(metric)


def of_classes(
    library: Library, whole: FromConfusion, of_row: Callable[[Truth, Predictions], Numbers] | None = None
) -> Form:
    """A metric of the confusion matrix; `of_row` if it is also a mean over rows."""

    def weighted(truth: Truth, predictions: Predictions) -> Weighted:
        where, classes = cells(truth, predictions), predictions.shape[1]
        return lambda counts: whole(counted_cells(where, classes, counts), truth.positive)

    return Form(
        compute=lambda truth, p: library(tally_classes(truth, p), truth),
        weighted=weighted,
        random=lambda truth: whole(expected_confusion(truth.targets, truth.classes), truth.positive),
        means=None if of_row is None else _mean_of(of_row),
    )


def of_labels(library: Library, whole: FromLabels) -> Form:
    """A metric of multilabel answers that follows from each label's numbers of rows."""

    def weighted(truth: Truth, predictions: Predictions) -> Weighted:
        chosen = truth.kind.decide(predictions)
        sums = np.concatenate([chosen * truth.targets, chosen, truth.targets], axis=1).astype(np.float64)
        return lambda counts: whole(*np.split(counts @ sums, 3))

    def random(truth: Truth) -> float:
        true = truth.targets.sum(axis=0).astype(np.float64)
        return whole(true / 2, np.full(len(true), len(truth) / 2), true)

    return Form(lambda truth, p: library(tally_rows(truth, p), truth), weighted, random)


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


def _correlation(statistic: str, truth: Truth, p: Predictions) -> float:
    """scipy's statistic of this name. Undefined where one side is constant: NaN, which callers must not hide."""
    if np.ptp(truth.targets) == 0 or np.ptp(p) == 0:
        return float("nan")
    return float(getattr(import_module("scipy.stats"), statistic)(truth.targets, p)[0])


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
    return Form(lambda truth, p: _correlation("pearsonr", truth, p), _PEARSON.weighted, lambda _: 0.0, _PEARSON)


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

    return Form(lambda truth, p: _correlation("spearmanr", truth, p), weighted, lambda _: 0.0)


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
        from sklearn.metrics import roc_auc_score

        return float("nan") if np.ptp(truth.targets) == 0 else float(roc_auc_score(truth.targets, p[:, 1]))

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


def mse() -> Form:
    def compute(truth: Truth, p: Predictions) -> float:
        from sklearn.metrics import mean_squared_error

        return float(mean_squared_error(truth.targets, p))

    return of_rows(compute, lambda truth, p: (truth.targets - p) ** 2, random_mse)


def random_mse(truth: Truth) -> float:
    """Of numbers drawn evenly from the range of the labels; NaN where the range is not known."""
    if truth.bounds is None:
        return float("nan")
    low, high = truth.bounds
    return float(((truth.targets - (low + high) / 2) ** 2).mean() + (high - low) ** 2 / 12)
