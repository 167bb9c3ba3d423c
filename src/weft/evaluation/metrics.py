"""Scores, by the libraries that everybody checks against."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn import metrics as sk

from weft.data.labels import Labels, Targets

Predictions = NDArray[np.float64]
"""[n, classes] probabilities, or [n] numbers"""


@dataclass(frozen=True)
class Metric:
    compute: Callable[[Targets, Predictions], float]
    is_correlation: bool = False
    """counted as (1 + r) / 2 in an overall score"""
    lower_is_better: bool = False


def _classes(predictions: Predictions) -> NDArray[np.int64]:
    classes: NDArray[np.int64] = predictions.argmax(axis=1)
    return classes


def _correlation(statistic: Callable[..., tuple[float, float]], y: Targets, p: Predictions) -> float:
    """Undefined where one side is constant: NaN, which callers must not hide."""
    if np.ptp(y) == 0 or np.ptp(p) == 0:
        return float("nan")
    return float(statistic(y, p)[0])


METRICS: dict[str, Metric] = {
    "accuracy": Metric(lambda y, p: float(sk.accuracy_score(y, _classes(p)))),
    "f1": Metric(lambda y, p: float(sk.f1_score(y, _classes(p), average="macro", zero_division=0))),
    "pearson": Metric(lambda y, p: _correlation(stats.pearsonr, y, p), is_correlation=True),
    "spearman": Metric(lambda y, p: _correlation(stats.spearmanr, y, p), is_correlation=True),
    "mse": Metric(lambda y, p: float(sk.mean_squared_error(y, p)), lower_is_better=True),
}

DEFAULTS: dict[str, tuple[str, ...]] = {
    "classification": ("accuracy", "f1"),
    "ordinal": ("accuracy", "f1"),
    "regression": ("pearson", "spearman", "mse"),
}
"""the metrics of each kind; the first is the primary one"""


def score(labels: Labels, targets: Targets, predictions: Predictions) -> dict[str, float]:
    """All metrics of a task, and the number of rows; a regression's in the label's own units."""
    if labels.is_numeric:
        targets, predictions = labels.in_units(targets.astype(np.float64)), labels.in_units(predictions)
    scores = {name: METRICS[name].compute(targets, predictions) for name in DEFAULTS[labels.kind]}
    return scores | {"n": len(targets)}


def overall(scores: dict[str, dict[str, float]], primary: dict[str, str]) -> float:
    """Mean over tasks of the primary metric, a correlation r counted as (1 + r) / 2; NaN if any is undefined."""
    values = []
    for task, metric in primary.items():
        value = scores[task][metric]
        values.append((1 + value) / 2 if METRICS[metric].is_correlation else value)
    return float(np.mean(values))
