"""Metrics for one kind of label: the value, the value with weighted rows, and the random baseline."""

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
"""a metric as a function of the count of each row"""

BLOCK = 65536
"""rows counted at a time"""


@dataclass(frozen=True)
class Means:
    """A metric that is a function of means over rows, so many models and resamples are one matrix product."""

    columns: Callable[[Truth, Predictions], Numbers]
    """[n, k] the values that are averaged"""
    finish: Callable[[Numbers], Numbers]
    """[..., k] means -> [...] the metric"""

    def weighted(self, truth: Truth, predictions: Predictions) -> Weighted:
        columns = self.columns(truth, predictions)
        return lambda counts: float(self.finish(counts @ columns / counts.sum()))


@dataclass(frozen=True)
class Form:
    """A metric for one kind of label."""

    compute: Callable[[Truth, Predictions], float]
    """the value by the reference library (scikit-learn or SciPy); NaN where it is undefined"""
    weighted: Callable[[Truth, Predictions], Weighted]
    """the value as a function of row counts"""
    random: Callable[[Truth], float]
    """random baseline: uniform over classes, each label with probability 1/2, or uniform within the bounds"""
    means: Means | None = None
    """how to score many models at once; None if the metric is not a function of means"""


@dataclass(frozen=True)
class Tally:
    """Distinct pairs of true and predicted class with their row counts, the input of metrics on decisions.

    Rows are counted in blocks: scikit-learn's temporary memory is many times the size of its input.
    """

    true: Targets
    chosen: NDArray[np.int64]
    rows: NDArray[np.int64] | None
    """row counts; None for multilabel, where every row is listed"""

    def of(self, metric: str, **settings: Any) -> float:
        """Call the scikit-learn metric of this name."""
        # lazy import: inference computes no metric
        function = getattr(import_module("sklearn.metrics"), metric)
        return float(function(self.true, self.chosen, sample_weight=self.rows, **settings))


Library = Callable[[Tally, Truth], float]
"""a metric on decisions, computed by scikit-learn"""


def library(metric: str, **settings: Any) -> Library:
    return lambda found, _: found.of(metric, **settings)


def averaged(metric: str, *, macro: bool = False) -> Library:
    """A per-class scikit-learn metric: of the positive class if there is one, else macro-averaged."""

    def score(found: Tally, truth: Truth) -> float:
        chosen = None if truth.positive is None or macro else [truth.positive]
        return found.of(metric, labels=chosen, average="macro", zero_division=0)

    return score


def balanced_accuracy(found: Tally, _: Truth) -> float:
    # balanced_accuracy_score warns about classes that are predicted but not present
    return found.of("recall_score", labels=np.unique(found.true), average="macro", zero_division=0)


def mcc(found: Tally, _: Truth) -> float:
    # scikit-learn returns 0 for a single class too, but warns
    return found.of("matthews_corrcoef") if len(np.union1d(found.true, found.chosen)) > 1 else 0.0


def all_right(truth: Truth, p: Predictions) -> Numbers:
    """[n] 1 where a row's prediction is correct in every label, else 0."""
    right = (truth.decide(p) == truth.targets).reshape(len(truth), -1)
    found: Numbers = right.all(axis=1).astype(np.float64)
    return found


def cells(truth: Truth, predictions: Predictions) -> NDArray[np.int64]:
    """[n] each row's flat index in the confusion matrix: true class * classes + predicted class."""
    found: NDArray[np.int64] = truth.targets * predictions.shape[1] + truth.decide(predictions)
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
    """List every row, for multilabel tasks."""
    return Tally(truth.targets, truth.decide(predictions).astype(np.int64, copy=False), None)


def of_decisions(metric: str) -> Callable[[Truth, Predictions], float]:
    """The scikit-learn metric of this name, for multilabel rows."""
    return lambda truth, p: tally_rows(truth, p).of(metric)


def of_classes(
    library: Library, whole: FromConfusion, of_row: Callable[[Truth, Predictions], Numbers] | None = None
) -> Form:
    """A metric of the confusion matrix; `of_row` is given if it is also a mean over rows."""

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
    """A multilabel metric that is a function of per-label row counts."""

    def weighted(truth: Truth, predictions: Predictions) -> Weighted:
        chosen = truth.decide(predictions)
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
    """The SciPy statistic of this name. NaN where one side is constant; callers must not hide that."""
    if np.ptp(truth.targets) == 0 or np.ptp(p) == 0:
        return float("nan")
    return float(getattr(import_module("scipy.stats"), statistic)(truth.targets, p)[0])


def _moments(truth: Truth, predictions: Predictions) -> Numbers:
    """[n, 5] first and second moments, centred so that squares of large numbers keep their precision."""
    y, p = truth.targets - truth.targets.mean(), predictions - predictions.mean()
    return np.stack([y, p, y * p, y * y, p * p], axis=1)


def _from_moments(means: Numbers) -> Numbers:
    """Compute Pearson's r from moments; NaN where one side is constant, up to rounding."""
    y, p, both, yy, pp = np.moveaxis(means, -1, 0)
    both, yy, pp = both - y * p, yy - y * y, pp - p * p
    tiny = 1e-12
    defined = (yy > tiny) & (pp > tiny)
    r: Numbers = both / np.sqrt(np.where(defined, yy * pp, 1.0))
    return np.where(defined, np.clip(r, -1.0, 1.0), np.nan)  # rounding can give |r| > 1


_PEARSON = Means(_moments, _from_moments)


def pearson() -> Form:
    return Form(lambda truth, p: _correlation("pearsonr", truth, p), _PEARSON.weighted, lambda _: 0.0, _PEARSON)


def spearman() -> Form:
    """Spearman's rank correlation: Pearson's r of the ranks, which are recomputed for each resample."""

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
    """[n] ranks of the values under given row counts; ties get their mean rank."""
    _, group = np.unique(values, return_inverse=True)

    def ranks(counts: Counts) -> Numbers:
        sizes = np.bincount(group, weights=counts)
        middle: Numbers = np.cumsum(sizes) - (sizes - 1) / 2
        return middle[group]

    return ranks


def auc() -> Form:
    """Area under the ROC curve for two classes, the same for either positive class. NaN if only one class occurs."""

    def compute(truth: Truth, p: Predictions) -> float:
        from sklearn.metrics import roc_auc_score

        return float("nan") if np.ptp(truth.targets) == 0 else float(roc_auc_score(truth.targets, p[:, 1]))

    def weighted(truth: Truth, p: Predictions) -> Weighted:
        """Rank-sum form: the share of pairs, one row of each class, that the scores order correctly."""
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
    """Expected MSE of predictions uniform over the label range; NaN where the range is unknown."""
    if truth.bounds is None:
        return float("nan")
    low, high = truth.bounds
    return float(((truth.targets - (low + high) / 2) ** 2).mean() + (high - low) ** 2 / 12)
