"""Calibration of probabilities: reliability and temperature scaling."""

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
