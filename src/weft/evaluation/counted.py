"""The metrics when rows count several times each.

A bootstrap scores a thousand resamples, too many for the libraries' own functions. A resample is a vector of counts,
one for each row, so every metric here is prepared once and then only sums over rows. A metric that has no such form is
scored on the repeated rows themselves. Tests hold each form against `metrics.METRICS`.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from weft.data.labels import Targets
from weft.evaluation.metrics import METRICS, Predictions, cells, decide

Counts = NDArray[np.float64]
"""[n] how often each row was drawn"""
Confusion = NDArray[np.float64]
"""[classes, classes] rows by true class (down) and predicted class (across); need not be whole numbers"""
Counted = Callable[[Counts], float]


def f1(right: NDArray[np.float64], predicted: NDArray[np.float64], true: NDArray[np.float64]) -> float:
    """Mean F1 over classes from their numbers of rows; a class that is neither predicted nor there counts as 0."""
    total = predicted + true
    return float(np.mean(np.divide(2 * right, total, out=np.zeros_like(total), where=total > 0)))


def _macro_f1(c: Confusion) -> float:
    # as scikit-learn does, over the classes that occur at all
    seen = (c.sum(0) + c.sum(1)) > 0
    return f1(c.diagonal()[seen], c.sum(0)[seen], c.sum(1)[seen])


def _distances(classes: int) -> NDArray[np.float64]:
    grid = np.arange(classes, dtype=np.float64)
    return np.abs(grid[:, None] - grid[None, :])


def _kappa(c: Confusion) -> float:
    weights = _distances(len(c)) ** 2
    expected = float((weights * np.outer(c.sum(1), c.sum(0))).sum() / c.sum())
    return 1 - float((weights * c).sum()) / expected if expected > 0 else float("nan")


FROM_CONFUSION: dict[str, Callable[[Confusion], float]] = {
    "accuracy": lambda c: float(c.trace() / c.sum()),
    "f1": _macro_f1,
    "kappa": _kappa,
    "class-distance": lambda c: float((_distances(len(c)) * c).sum() / c.sum()),
}


def confusion(targets: Targets, chosen: NDArray[np.int64], classes: int) -> Confusion:
    return _counted_cells(targets * classes + chosen, classes, None)


def _counted_cells(where: Targets, classes: int, counts: Counts | None) -> Confusion:
    """The confusion matrix of rows whose cell is known."""
    found = np.bincount(where, weights=counts, minlength=classes * classes).reshape(classes, classes)
    return found.astype(np.float64, copy=False)


def counted(name: str, targets: Targets, predictions: Predictions) -> Counted:
    """The named metric as a function of how often each row counts."""
    if targets.ndim == 2:
        return _multilabel(name, targets, predictions)
    if name in FROM_CONFUSION:
        classes, whole = predictions.shape[1], FROM_CONFUSION[name]
        where = cells(predictions, targets)
        return lambda counts: whole(_counted_cells(where, classes, counts))
    if name == "mse":
        squares = (targets - predictions) ** 2
        return lambda counts: float(counts @ squares / counts.sum())
    if name == "pearson":
        numbers = np.asarray(targets, dtype=np.float64)
        return lambda counts: _pearson(numbers, predictions, counts)
    if name == "spearman":
        ranks = [_ranks(np.asarray(side, dtype=np.float64)) for side in (targets, predictions)]
        return lambda counts: _pearson(ranks[0](counts), ranks[1](counts), counts)
    if name == "auc":
        return _auc(targets, predictions[:, 1])
    return _repeated(name, targets, predictions)


def _repeated(name: str, targets: Targets, predictions: Predictions) -> Counted:
    def score(counts: Counts) -> float:
        rows = np.repeat(np.arange(len(targets)), counts.astype(np.int64))
        return METRICS[name].compute(targets[rows], predictions[rows])

    return score


def _multilabel(name: str, targets: Targets, predictions: Predictions) -> Counted:
    chosen = decide(predictions, targets)
    if name == "accuracy":
        right = (chosen == targets).all(axis=1).astype(np.float64)
        return lambda counts: float(counts @ right / counts.sum())
    sums = np.concatenate([chosen * targets, chosen, targets], axis=1).astype(np.float64)

    def score(counts: Counts) -> float:
        both, predicted, true = np.split(counts @ sums, 3)
        if name == "f1-micro":
            both, predicted, true = both.sum(keepdims=True), predicted.sum(keepdims=True), true.sum(keepdims=True)
        return f1(both, predicted, true)

    return score if name in ("f1", "f1-micro") else _repeated(name, targets, predictions)


def _pearson(y: NDArray[np.float64], p: NDArray[np.float64], counts: Counts) -> float:
    total = counts.sum()
    y, p = y - counts @ y / total, p - counts @ p / total
    both, yy, pp = (counts * y) @ p, (counts * y) @ y, (counts * p) @ p
    # one side constant, up to rounding
    tiny = 1e-12 * total
    return float(both / np.sqrt(yy * pp)) if yy > tiny and pp > tiny else float("nan")


def _ranks(values: NDArray[np.float64]) -> Callable[[Counts], NDArray[np.float64]]:
    """[n] the mean rank of each row's value among all rows, ties alike, every row counted as often as it was drawn."""
    _, group = np.unique(values, return_inverse=True)

    def ranks(counts: Counts) -> NDArray[np.float64]:
        sizes = np.bincount(group, weights=counts)
        middle: NDArray[np.float64] = np.cumsum(sizes) - (sizes - 1) / 2
        return middle[group]

    return ranks


def _auc(targets: Targets, scores: NDArray[np.float64]) -> Counted:
    """The rank-sum form: the share of pairs, one row of each class, that the scores put in the right order."""
    ranks = _ranks(scores)
    positive = targets == 1

    def score(counts: Counts) -> float:
        ones = counts[positive].sum()
        zeros = counts.sum() - ones
        if not (ones and zeros):
            return float("nan")
        return float((counts[positive] @ ranks(counts)[positive] - ones * (ones + 1) / 2) / (ones * zeros))

    return score
