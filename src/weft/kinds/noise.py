"""Probable label errors: out-of-sample predictions of linear models, and what they say of the given labels.

scikit-learn and cleanlab are imported inside functions: a trained model needs neither.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.foundation.errors import UserError
from weft.kinds.truth import Predictions

Features = NDArray[np.float32]
"""[n, features] of rows"""
Folds = NDArray[np.int64]
"""[n] number of the fold in which each row is held out"""
FAR = 3.5
"""A residual beyond this many robust standard deviations is suspect (Iglewicz and Hoaglin, 1993)."""
MAD = 1.4826
"""median absolute deviation -> standard deviation, for a normal distribution"""


@dataclass(frozen=True)
class Suspects:
    """Label quality of rows."""

    flagged: NDArray[np.bool_]
    """[n] whether the label is probably wrong"""
    quality: NDArray[np.float64]
    """[n] label quality; the lowest are the most suspicious"""


def held_out(folds: Folds) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """Yield the rows to fit on and the rows to predict, fold by fold."""
    for fold in np.unique(folds):
        yield folds != fold, folds == fold


def class_probabilities(
    features: Features, targets: NDArray[np.int64], classes: int, folds: Folds
) -> NDArray[np.float64]:
    """[n, classes] out-of-sample probabilities of a logistic regression; a class that a fit never saw gets 0."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    found = np.zeros((len(targets), classes))
    for fit, predict in held_out(folds):
        seen = np.unique(targets[fit])
        if len(seen) == 1:
            found[predict, seen[0]] = 1.0
            continue
        with warnings.catch_warnings():  # a fit that stops early is good enough for an audit
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LogisticRegression(max_iter=300, tol=1e-3).fit(features[fit], targets[fit])
        found[np.ix_(predict, seen)] = model.predict_proba(features[predict])
    return found


def numbers(features: Features, targets: NDArray[np.float64], folds: Folds) -> NDArray[np.float64]:
    """[n] out-of-sample predictions of a ridge regression."""
    from sklearn.linear_model import Ridge

    found = np.zeros(len(targets))
    for fit, predict in held_out(folds):
        found[predict] = Ridge().fit(features[fit], targets[fit]).predict(features[predict])
    return found


def suspicious_classes(targets: NDArray[np.int64], predictions: Predictions) -> Suspects:
    """Confident learning (Northcutt et al., 2021) by cleanlab: prune by noise rate, quality is self-confidence.

    A class's threshold is the mean predicted probability of its own rows. Rows whose predicted probability of another
    class exceeds that class's threshold form the confident joint, which estimates how many labels of each class are
    wrong. That many rows are flagged, those with the largest margin for another class first.
    """
    cleanlab = _cleanlab()
    present, codes = np.unique(targets, return_inverse=True)
    if len(present) < 2:
        return Suspects(np.zeros(len(targets), dtype=bool), np.ones(len(targets)))
    known = predictions[:, present]  # cleanlab expects every class to occur
    known = known / np.maximum(known.sum(axis=1, keepdims=True), 1e-12)
    flagged = cleanlab(codes, known, filter_by="prune_by_noise_rate", n_jobs=1)
    return Suspects(flagged, known[np.arange(len(codes)), codes])


def suspicious_numbers(targets: NDArray[np.float64], predictions: Predictions) -> Suspects:
    """Residuals far outside of the bulk: more than `FAR` robust standard deviations from their median."""
    residuals = targets - predictions
    away = np.abs(residuals - np.median(residuals))
    scale = MAD * float(np.median(away))
    flagged = away > FAR * scale if scale > 0 else np.zeros(len(away), dtype=bool)
    return Suspects(flagged, np.exp(-away / scale) if scale > 0 else np.ones(len(away)))


def _cleanlab() -> Callable[..., NDArray[np.bool_]]:
    try:
        from cleanlab.filter import find_label_issues
    except ImportError:
        raise UserError("needs cleanlab, which is not installed; pip install 'weft[audit]'") from None
    found: Callable[..., NDArray[np.bool_]] = find_label_issues
    return found
