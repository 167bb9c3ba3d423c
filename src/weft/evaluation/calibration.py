"""Calibration of probabilities: reliability, temperature scaling and decision thresholds."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.foundation.randomness import generator
from weft.kinds.probability import TINY, ProbabilityKind
from weft.kinds.truth import Predictions, Targets

BINS = 10


def log_loss(kind: ProbabilityKind, predictions: Predictions, targets: Targets) -> float:
    """Mean negative log-likelihood of the true labels."""
    return float(-np.log(np.clip(kind.truth_probabilities(predictions, targets), TINY, 1.0)).mean())


def fit_temperature(kind: ProbabilityKind, predictions: Predictions, targets: Targets) -> float:
    """Return the temperature from 1/20 to 20 with the smallest log loss."""
    from scipy.optimize import minimize_scalar  # lazy: slow to import, and inference fits nothing

    def loss(log_temperature: float) -> float:
        return log_loss(kind, kind.temper(predictions, float(np.exp(log_temperature))), targets)

    found = minimize_scalar(loss, bounds=(-np.log(20), np.log(20)), method="bounded", options={"xatol": 1e-4})
    return float(np.exp(found.x))


@dataclass(frozen=True)
class Reliability:
    """Accuracy as a function of confidence, in bins. Empty bins are left out."""

    confidence: NDArray[np.float64]
    """[bins] mean confidence"""
    right: NDArray[np.float64]
    """[bins] accuracy"""
    rows: NDArray[np.int64]
    """[bins] number of predictions"""

    @property
    def error(self) -> float:
        """expected calibration error: the mean of |confidence - accuracy|, weighted by the rows of each bin"""
        return float((self.rows * np.abs(self.confidence - self.right)).sum() / self.rows.sum())


def reliability(kind: ProbabilityKind, predictions: Predictions, targets: Targets, bins: int = BINS) -> Reliability:
    """Compute reliability in bins of equal width."""
    confidence, right = kind.confidence(predictions, targets)
    bin_of = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    rows = np.bincount(bin_of, minlength=bins)
    used = rows > 0
    means = [np.bincount(bin_of, weights=values, minlength=bins)[used] / rows[used] for values in (confidence, right)]
    return Reliability(means[0], means[1], rows[used])


def cross_fitted(kind: ProbabilityKind, predictions: Predictions, targets: Targets) -> Predictions:
    """Scale each half of the rows with the temperature of the other half: the effect of calibration on unseen rows."""
    if len(targets) < 2:  # too few rows to split
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
    """A decision threshold for two classes: predict the second class at or above it."""

    value: float
    """probability of the second class"""
    score: float
    """the metric at this threshold"""


def best_threshold(scores: NDArray[np.float64], targets: Targets, by: str) -> Threshold:
    """Return the threshold with the best `accuracy`, or `f1` of the second class, for two classes.

    Of equally good thresholds, the one nearest to 0.5. It is halfway between two rows' probabilities, never equal to
    one of them.
    """
    levels, group = np.unique(scores, return_inverse=True)
    ones = np.bincount(group, weights=targets == 1)
    all_rows = np.bincount(group).astype(np.float64)
    # rows at or above each candidate threshold, from all rows to none
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
