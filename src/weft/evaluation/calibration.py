"""Whether probabilities can be taken at their word, and what to do about it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.foundation.randomness import generator
from weft.kinds.probability import TINY, ProbabilityKind
from weft.kinds.truth import Predictions, Targets

BINS = 10


def log_loss(kind: ProbabilityKind, predictions: Predictions, targets: Targets) -> float:
    """The mean of -log p of what is true."""
    return float(-np.log(np.clip(kind.truth_probabilities(predictions, targets), TINY, 1.0)).mean())


def fit_temperature(kind: ProbabilityKind, predictions: Predictions, targets: Targets) -> float:
    """The temperature from 1/20 to 20 with the smallest log-loss."""
    from scipy.optimize import minimize_scalar  # takes long to import, and answers need no fit

    def loss(log_temperature: float) -> float:
        return log_loss(kind, kind.temper(predictions, float(np.exp(log_temperature))), targets)

    found = minimize_scalar(loss, bounds=(-np.log(20), np.log(20)), method="bounded", options={"xatol": 1e-4})
    return float(np.exp(found.x))


@dataclass(frozen=True)
class Reliability:
    """How often answers of a given confidence are right."""

    confidence: NDArray[np.float64]
    """[bins] mean confidence of the rows in each bin that has rows"""
    right: NDArray[np.float64]
    """[bins] share of them that is right"""
    rows: NDArray[np.int64]

    @property
    def error(self) -> float:
        """expected calibration error: the mean gap between the two, by rows"""
        return float((self.rows * np.abs(self.confidence - self.right)).sum() / self.rows.sum())


def reliability(kind: ProbabilityKind, predictions: Predictions, targets: Targets, bins: int = BINS) -> Reliability:
    """In bins of equal width."""
    confidence, right = kind.confidence(predictions, targets)
    bin_of = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    rows = np.bincount(bin_of, minlength=bins)
    used = rows > 0
    means = [np.bincount(bin_of, weights=values, minlength=bins)[used] / rows[used] for values in (confidence, right)]
    return Reliability(means[0], means[1], rows[used])


def cross_fitted(kind: ProbabilityKind, predictions: Predictions, targets: Targets) -> Predictions:
    """Each half of the rows at the temperature of the other half: what calibration gains on rows it has not seen."""
    if len(targets) < 2:  # there is no other half
        return predictions
    order = generator(0, "calibration", len(targets)).permutation(len(targets))
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    tempered = np.empty_like(predictions)
    for here, there in (halves, halves[::-1]):
        own = fit_temperature(kind, predictions[there], targets[there])
        tempered[here] = kind.temper(predictions[here], own)
    return tempered


@dataclass(frozen=True)
class Threshold:
    """Answer the second class from this probability on."""

    value: float
    score: float


def best_threshold(scores: NDArray[np.float64], targets: Targets, by: str) -> Threshold:
    """The threshold with the best `accuracy`, or `f1` of the second class, for two classes.

    Among equals the one nearest to a half. It lies between two rows' probabilities, never on one.
    """
    levels, group = np.unique(scores, return_inverse=True)
    ones = np.bincount(group, weights=targets == 1)
    all_rows = np.bincount(group).astype(np.float64)
    # from everything answered 1 down to nothing: rows at or above each cut
    above_ones = np.append(ones[::-1].cumsum()[::-1], 0.0)
    above = np.append(all_rows[::-1].cumsum()[::-1], 0.0)
    if by == "accuracy":
        values = (above_ones + (len(targets) - ones.sum()) - (above - above_ones)) / len(targets)
    else:
        values = 2 * above_ones / np.maximum(above + ones.sum(), 1)
    edges = np.concatenate([[0.0], (levels[:-1] + levels[1:]) / 2, [1.0]])
    best = np.flatnonzero(values >= values.max() - 1e-12)
    chosen = best[np.abs(edges[best] - 0.5).argmin()]
    return Threshold(float(edges[chosen]), float(values[chosen]))
