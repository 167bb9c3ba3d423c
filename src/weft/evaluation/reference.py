"""What a score is worth: the same metric for answers that know nothing."""

import numpy as np

from weft.data.labels import Targets
from weft.evaluation.counted import FROM_CONFUSION, f1
from weft.evaluation.metrics import METRICS


def guessing(name: str, targets: Targets, classes: int, bounds: tuple[float, float] = (0.0, 1.0)) -> float:
    """The metric expected of uniform random answers: any class, each label with a half, any number in `bounds`.

    Of class metrics it is the metric of the expected confusion matrix.
    """
    if targets.ndim == 2:
        return _guessed_labels(name, targets)
    if METRICS[name].is_correlation:
        return 0.0
    if name == "mse":
        low, high = bounds
        return float(((targets - (low + high) / 2) ** 2).mean() + (high - low) ** 2 / 12)
    if name == "auc":
        return 0.5
    if name in FROM_CONFUSION:
        rows = np.bincount(targets.astype(np.int64), minlength=classes).astype(np.float64)
        return FROM_CONFUSION[name](np.repeat(rows[:, None] / classes, classes, axis=1))
    return float("nan")


def _guessed_labels(name: str, targets: Targets) -> float:
    rows, labels = targets.shape
    if name == "accuracy":
        return float(0.5**labels)
    true = targets.sum(axis=0).astype(np.float64)
    both, predicted = true / 2, np.full(labels, rows / 2)
    if name == "f1-micro":
        both, predicted, true = both.sum(keepdims=True), predicted.sum(keepdims=True), true.sum(keepdims=True)
    return f1(both, predicted, true) if name in ("f1", "f1-micro") else float("nan")


def constant(name: str, targets: Targets, classes: int) -> float:
    """The metric of always giving the commonest class, or the mean; NaN where that is undefined."""
    if targets.ndim == 2:
        always = np.repeat((targets.mean(axis=0) > 0.5)[None, :], len(targets), axis=0).astype(np.float64)
        return METRICS[name].compute(targets, always)
    if name == "mse":
        return float(np.var(targets))
    if METRICS[name].is_correlation:
        return float("nan")
    if name == "auc":
        return 0.5
    rows = np.bincount(targets.astype(np.int64), minlength=classes)
    return METRICS[name].compute(targets, np.eye(classes)[np.full(len(targets), rows.argmax())])
