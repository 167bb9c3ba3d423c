"""Scores, by the libraries that everybody checks against."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn import metrics as sk

from weft.data.labels import Labels, Targets
from weft.errors import UserError

Predictions = NDArray[np.float64]
"""[n, classes] probabilities, or [n] numbers"""

BLOCK = 65536
"""rows counted at a time"""


@dataclass(frozen=True)
class Metric:
    compute: Callable[[Targets, Predictions], float]
    kinds: tuple[str, ...]
    """which kinds of tasks it can score"""
    is_correlation: bool = False
    """counted as (1 + r) / 2 in an overall score"""
    lower_is_better: bool = False


def decide(predictions: Predictions, targets: Targets) -> NDArray[np.int64]:
    """[n] the likeliest class, or for multilabel [n, labels] which labels are more likely than not."""
    chosen: NDArray[np.int64]
    if targets.ndim == 2:
        chosen = (predictions > 0.5).astype(np.int64)
    else:
        chosen = predictions.argmax(axis=1)
    return chosen


def cells(predictions: Predictions, targets: Targets) -> NDArray[np.int64]:
    """[n] where each row stands in a confusion matrix, flat: true class times classes plus the chosen one."""
    found: NDArray[np.int64] = targets * predictions.shape[1] + decide(predictions, targets)
    return found


@dataclass(frozen=True)
class Tally:
    """What metrics of decisions see: each pair of a true and a chosen class once, and how many rows have it.

    A large set is counted block by block: sklearn's working space is many times what a metric reads.
    """

    true: Targets
    chosen: NDArray[np.int64]
    rows: NDArray[np.int64] | None
    """None for multilabel, whose rows stand for themselves"""

    def of(self, metric: Callable[..., float], **settings: Any) -> float:
        return float(metric(self.true, self.chosen, sample_weight=self.rows, **settings))


def tally(targets: Targets, predictions: Predictions) -> Tally:
    if targets.ndim == 2:
        return Tally(targets, decide(predictions, targets), None)
    classes = predictions.shape[1]
    table = np.zeros(classes**2, dtype=np.int64)
    for start in range(0, len(targets), BLOCK):
        part = slice(start, start + BLOCK)
        table += np.bincount(cells(predictions[part], targets[part]), minlength=classes**2)
    seen = np.flatnonzero(table)
    return Tally(seen // classes, seen % classes, table[seen])


def _correlation(statistic: Callable[..., tuple[float, float]], y: Targets, p: Predictions) -> float:
    """Undefined where one side is constant: NaN, which callers must not hide."""
    if np.ptp(y) == 0 or np.ptp(p) == 0:
        return float("nan")
    return float(statistic(y, p)[0])


def _auc(y: Targets, p: Predictions) -> float:
    """Undefined where only one class is there."""
    if np.ptp(y) == 0:
        return float("nan")
    return float(sk.roc_auc_score(y, p[:, 1]))


_CLASSES = ("classification", "ordinal")
METRICS: dict[str, Metric] = {
    # for multilabel the share of rows with every label right
    "accuracy": Metric(lambda y, p: tally(y, p).of(sk.accuracy_score), (*_CLASSES, "multilabel")),
    # the mean over classes, each counting alike
    "f1": Metric(lambda y, p: tally(y, p).of(sk.f1_score, average="macro", zero_division=0), (*_CLASSES, "multilabel")),
    "f1-micro": Metric(lambda y, p: tally(y, p).of(sk.f1_score, average="micro", zero_division=0), ("multilabel",)),
    "auc": Metric(_auc, _CLASSES),
    "kappa": Metric(lambda y, p: tally(y, p).of(sk.cohen_kappa_score, weights="quadratic"), ("ordinal",)),
    # how many classes off, on average
    "class-distance": Metric(lambda y, p: tally(y, p).of(sk.mean_absolute_error), ("ordinal",), lower_is_better=True),
    "pearson": Metric(lambda y, p: _correlation(stats.pearsonr, y, p), ("regression",), is_correlation=True),
    "spearman": Metric(lambda y, p: _correlation(stats.spearmanr, y, p), ("regression",), is_correlation=True),
    "mse": Metric(lambda y, p: float(sk.mean_squared_error(y, p)), ("regression",), lower_is_better=True),
}

DEFAULTS: dict[str, tuple[str, ...]] = {
    "classification": ("accuracy", "f1"),
    "ordinal": ("accuracy", "f1", "class-distance"),
    "multilabel": ("f1-micro", "f1", "accuracy"),
    "regression": ("pearson", "spearman", "mse"),
}
"""the metrics of each kind; the first is the primary one"""


def choose_metrics(labels: Labels, wanted: Sequence[str] | None, task: str) -> tuple[str, ...]:
    """A task's metrics, the primary one first."""
    if not wanted:
        return DEFAULTS[labels.kind]
    fitting = [name for name, metric in METRICS.items() if labels.kind in metric.kinds]
    for name in wanted:
        if name not in fitting:
            raise UserError(
                f"tasks.{task}.metrics: found {name!r}, expected some of {', '.join(fitting)} for a {labels.kind} task"
            )
    if "auc" in wanted and len(labels.names) != 2:
        raise UserError(f"tasks.{task}.metrics: 'auc' is for two classes, but the task has {len(labels.names)}")
    if METRICS[wanted[0]].lower_is_better:
        raise UserError(
            f"tasks.{task}.metrics: the first one counts in the overall score, where more is better; "
            f"{wanted[0]!r} cannot stand there"
        )
    return tuple(wanted)


def score(labels: Labels, names: Sequence[str], targets: Targets, predictions: Predictions) -> dict[str, float]:
    """The named metrics of a task, and the number of rows; a regression's in the label's own units."""
    if labels.is_numeric:
        targets, predictions = labels.in_units(targets.astype(np.float64)), labels.in_units(predictions)
    scores = {name: METRICS[name].compute(targets, predictions) for name in names}
    return scores | {"n": len(targets)}


def overall(scores: dict[str, dict[str, float]], primary: dict[str, str]) -> float:
    """Mean over tasks of the primary metric, a correlation r counted as (1 + r) / 2; NaN if any is undefined."""
    values = []
    for task, metric in primary.items():
        value = scores[task][metric]
        values.append((1 + value) / 2 if METRICS[metric].is_correlation else value)
    return float(np.mean(values))
