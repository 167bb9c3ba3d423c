"""What there is to know about a task with classes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn import metrics as sk

from weft.evaluation.calibration import (
    Reliability,
    Threshold,
    best_threshold,
    cross_fitted,
    fit_temperature,
    reliability,
)
from weft.evaluation.counted import confusion
from weft.runs.reader import TaskRun

ROC_POINTS = 120


@dataclass(frozen=True)
class ClassRow:
    """One class against all others."""

    name: str
    precision: float
    recall: float
    f1: float
    rows: int


@dataclass(frozen=True)
class Roc:
    name: str
    auc: float
    false_positives: NDArray[np.float64]
    true_positives: NDArray[np.float64]


@dataclass(frozen=True)
class Ordered:
    """For classes in order, counted 0, 1, 2, ..."""

    mse: float
    correlation: float
    off_by_two: float
    """share of rows"""


@dataclass(frozen=True)
class Thresholds:
    """For two classes: from which probability of the positive one on to answer it (the second if none is named)."""

    positive: str
    accuracy: Threshold
    f1: Threshold
    f1_at_half: float


@dataclass(frozen=True)
class ClassFindings:
    confusion: NDArray[np.float64] | None
    """rows by true (down) and predicted class; None for multilabel"""
    rows: list[ClassRow]
    rocs: list[Roc]
    reliability: Reliability
    temperature: float
    error_tempered: float
    """calibration error at a temperature fitted on the other half of the rows"""
    ordered: Ordered | None
    thresholds: Thresholds | None


def find(task: TaskRun) -> ClassFindings:
    multilabel = task.kind == "multilabel"
    ordinal = task.kind == "ordinal"
    classes = len(task.names)
    labels = list(range(classes))
    values = sk.precision_recall_fscore_support(
        task.targets, task.chosen, labels=None if multilabel else labels, zero_division=0
    )
    rows = [
        ClassRow(n, float(p), float(r), float(f), int(s)) for n, p, r, f, s in zip(task.names, *values, strict=True)
    ]
    return ClassFindings(
        confusion=None if multilabel else confusion(task.targets, task.chosen, classes),
        rows=rows,
        rocs=_rocs(task),
        reliability=reliability(task.predictions, task.targets),
        temperature=fit_temperature(task.predictions, task.targets),
        error_tempered=reliability(cross_fitted(task.predictions, task.targets), task.targets).error,
        ordered=_ordered(task) if ordinal else None,
        thresholds=_thresholds(task) if classes == 2 and not multilabel else None,
    )


def _rocs(task: TaskRun) -> list[Roc]:
    """Two classes: one curve. Ordered: one for each cut between them. Else: each class against the others."""
    p, y = task.predictions, task.targets
    if task.kind == "multilabel":
        cases = [(name, p[:, i], y[:, i] > 0.5) for i, name in enumerate(task.names)]
    elif len(task.names) == 2:
        cases = [(task.names[task.one], p[:, task.one], y == task.one)]
    elif task.kind == "ordinal":
        above = [f"{name} or above" for name in task.names[1:-1]] + [task.names[-1]]
        cases = [(name, p[:, i:].sum(axis=1), y >= i) for i, name in enumerate(above, start=1)]
    else:
        cases = [(name, p[:, i], y == i) for i, name in enumerate(task.names)]
    return [_roc(name, scores, true) for name, scores, true in cases if 0 < true.sum() < len(true)]


def _roc(name: str, scores: NDArray[np.float64], true: NDArray[np.bool_]) -> Roc:
    false_positives, true_positives, _ = sk.roc_curve(true, scores)
    kept = np.unique(np.linspace(0, len(false_positives) - 1, ROC_POINTS).astype(int))
    auc = float(sk.roc_auc_score(true, scores))
    return Roc(name, auc, false_positives[kept], true_positives[kept])


def _ordered(task: TaskRun) -> Ordered:
    gaps = np.abs(task.chosen - task.targets)
    constant = np.ptp(task.chosen) == 0 or np.ptp(task.targets) == 0
    correlation = float("nan") if constant else float(stats.pearsonr(task.targets, task.chosen)[0])
    return Ordered(float((gaps**2).mean()), correlation, float((gaps >= 2).mean()))


def _thresholds(task: TaskRun) -> Thresholds:
    scores, targets = task.predictions[:, task.one], (task.targets == task.one).astype(np.int64)
    by = {name: best_threshold(scores, targets, name) for name in ("accuracy", "f1")}
    at_half = float(sk.f1_score(targets, task.chosen == task.one, zero_division=0))
    return Thresholds(task.names[task.one], by["accuracy"], by["f1"], at_half)
