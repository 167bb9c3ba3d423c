"""What there is to know about a task with named labels."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn import metrics as sk

from weft.evaluation.calibration import Reliability, Threshold, best_threshold
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
class BinaryCut:
    """Whether a row is of a class, of some classes, or has a label."""

    name: str
    scores: NDArray[np.float64]
    """[n] the probability of yes"""
    true: NDArray[np.bool_]


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


def class_rows(task: TaskRun) -> list[ClassRow]:
    classes = list(range(len(task.names)))
    values = sk.precision_recall_fscore_support(task.targets, task.chosen, labels=classes, zero_division=0)
    return [
        ClassRow(n, float(p), float(r), float(f), int(s)) for n, p, r, f, s in zip(task.names, *values, strict=True)
    ]


def roc(question: BinaryCut) -> Roc:
    false_positives, true_positives, _ = sk.roc_curve(question.true, question.scores)
    kept = np.unique(np.linspace(0, len(false_positives) - 1, ROC_POINTS).astype(int))
    auc = float(sk.roc_auc_score(question.true, question.scores))
    return Roc(question.name, auc, false_positives[kept], true_positives[kept])


def ordered(task: TaskRun) -> Ordered:
    gaps = np.abs(task.chosen - task.targets)
    constant = np.ptp(task.chosen) == 0 or np.ptp(task.targets) == 0
    correlation = float("nan") if constant else float(stats.pearsonr(task.targets, task.chosen)[0])
    return Ordered(float((gaps**2).mean()), correlation, float((gaps >= 2).mean()))


def thresholds(task: TaskRun) -> Thresholds:
    scores, targets = task.predictions[:, task.one], (task.targets == task.one).astype(np.int64)
    by = {name: best_threshold(scores, targets, name) for name in ("accuracy", "f1")}
    at_half = float(sk.f1_score(targets, task.chosen == task.one, zero_division=0))
    return Thresholds(task.names[task.one], by["accuracy"], by["f1"], at_half)
