"""Metrics from weighted row counts: per class or label, the rows true, predicted, and both.

A bootstrap scores a thousand resamples, for which scikit-learn's functions are too slow. A resample is a vector with
one count per row, so every metric here is a function of sums over rows. Tests compare each with scikit-learn.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from weft.kinds.truth import Targets

Numbers = NDArray[np.float64]
Counts = NDArray[np.float64]
"""[n] how often each row was drawn"""
Confusion = NDArray[np.float64]
"""[classes, classes] confusion matrix: row i is true class i, column j predicted class j; counts may be fractional"""
FromConfusion = Callable[[Confusion, int | None], float]
"""(confusion matrix, number of the positive class) -> metric"""
FromLabels = Callable[[Numbers, Numbers, Numbers], float]
"""(true positives, predicted positives, actual positives) per label -> metric"""


def confusion(targets: Targets, chosen: NDArray[np.int64], classes: int) -> Confusion:
    return counted_cells(targets * classes + chosen, classes, None)


def counted_cells(where: Targets, classes: int, counts: Counts | None) -> Confusion:
    """Build a confusion matrix from each row's flat cell index, weighted by `counts`."""
    found = np.bincount(where, weights=counts, minlength=classes * classes).reshape(classes, classes)
    return found.astype(np.float64, copy=False)


def expected_confusion(targets: Targets, classes: int) -> Confusion:
    """Return the expected confusion matrix of the random baseline (uniform predictions)."""
    rows = np.bincount(targets.astype(np.int64), minlength=classes).astype(np.float64)
    return np.repeat(rows[:, None] / classes, classes, axis=1)


def mean_ratio(part: Numbers, whole: Numbers) -> float:
    """Mean over classes of part / whole; a class with whole = 0 counts as 0."""
    return float(np.mean(np.divide(part, whole, out=np.zeros_like(whole), where=whole > 0)))


def f1(right: Numbers, predicted: Numbers, true: Numbers) -> float:
    """Mean F1 over classes; a class that is neither predicted nor present counts as 0."""
    return mean_ratio(2 * right, predicted + true)


def f1_micro(right: Numbers, predicted: Numbers, true: Numbers) -> float:
    return f1(right.sum(keepdims=True), predicted.sum(keepdims=True), true.sum(keepdims=True))


def precision(right: Numbers, predicted: Numbers, true: Numbers) -> float:  # noqa: ARG001
    return mean_ratio(right, predicted)


def recall(right: Numbers, predicted: Numbers, true: Numbers) -> float:  # noqa: ARG001
    return mean_ratio(right, true)


def averaged(of: FromLabels, *, macro: bool = False) -> FromConfusion:
    """Turn a per-class metric into one of a confusion matrix: of the positive class if there is one, else macro.

    The macro average is over the classes that occur as true or predicted, as in scikit-learn.
    """

    def whole(c: Confusion, positive: int | None) -> float:
        if positive is None or macro:
            chosen = np.flatnonzero(c.sum(0) + c.sum(1))
        else:
            chosen = np.array([positive])
        return of(c.diagonal()[chosen], c.sum(0)[chosen], c.sum(1)[chosen])

    return whole


def accuracy(c: Confusion, _: int | None) -> float:
    return float(c.trace() / c.sum())


def balanced_accuracy(c: Confusion, _: int | None) -> float:
    """Mean recall over the classes that have rows."""
    there = c.sum(1) > 0
    return mean_ratio(c.diagonal()[there], c.sum(1)[there])


def mcc(c: Confusion, _: int | None) -> float:
    """Matthews correlation coefficient for any number of classes; 0 where one side is constant, as in scikit-learn.

    `(c s - p . t) / sqrt((s**2 - p . p) (s**2 - t . t))` with c correct rows of s, and p and t the predicted and true
    rows per class (Gorodkin, 2004).
    """
    total, predicted, true = float(c.sum()), c.sum(0), c.sum(1)
    free = (total**2 - float(predicted @ predicted)) * (total**2 - float(true @ true))
    tiny = 1e-12 * total**4  # one side constant, up to rounding
    return (float(c.trace()) * total - float(predicted @ true)) / float(np.sqrt(free)) if free > tiny else 0.0


def distances(classes: int) -> Numbers:
    grid = np.arange(classes, dtype=np.float64)
    return np.abs(grid[:, None] - grid[None, :])


def kappa(c: Confusion, _: int | None) -> float:
    """Cohen's kappa with quadratic weights."""
    weights = distances(len(c)) ** 2
    expected = float((weights * np.outer(c.sum(1), c.sum(0))).sum() / c.sum())
    return 1 - float((weights * c).sum()) / expected if expected > 0 else float("nan")


def class_distance(c: Confusion, _: int | None) -> float:
    return float((distances(len(c)) * c).sum() / c.sum())
