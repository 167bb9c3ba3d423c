"""Statistics of tasks with named labels."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn import metrics as sk

from weft.evaluation.calibration import Reliability
from weft.evaluation.thresholds import Threshold, best_threshold
from weft.kinds.metrics import METRICS, title
from weft.runs.reader import TaskRun

ROC_POINTS = 120


@dataclass(frozen=True)
class ClassRow:
    """Precision, recall and F1 of one class."""

    name: str
    precision: float
    recall: float
    f1: float
    rows: int
    threshold: float | None = None
    """Probability above which it is predicted; None if its probability is not compared with a threshold."""
    is_kept: bool = False
    """Whether too few rows have the label to tune its threshold."""


@dataclass(frozen=True)
class BinaryCut:
    """A binary question about each row: whether it has a class, one of several classes, or a label."""

    name: str
    scores: NDArray[np.float64]
    """[n] Probability that the answer is yes."""
    true: NDArray[np.bool_]
    chosen: NDArray[np.bool_]
    """[n] Whether the model answers yes, by the thresholds that are saved with it."""


@dataclass(frozen=True)
class Roc:
    name: str
    auc: float
    false_positives: NDArray[np.float64]
    true_positives: NDArray[np.float64]


@dataclass(frozen=True)
class PrecisionRecall:
    """Precision and recall at every threshold on the probability, and at the one that is used."""

    name: str
    average_precision: float
    recall: NDArray[np.float64]
    precision: NDArray[np.float64]
    used: tuple[float, float]
    """Recall and precision of the model's decisions."""


@dataclass(frozen=True)
class Tuning:
    """A metric with default thresholds, with cross-fitted ones, and with tuned ones on the rows that tuned them."""

    metric: str
    title: str
    default: float
    cross_fitted: float
    naive: float


@dataclass(frozen=True)
class Ordered:
    """Error statistics of ordered classes, numbered 0, 1, 2, ..."""

    mse: float
    correlation: float
    off_by_two: float
    """Share of rows."""


@dataclass(frozen=True)
class Thresholds:
    """Best decision thresholds for two classes, on the probability of the positive one (by default the second)."""

    positive: str
    accuracy: Threshold
    f1: Threshold
    f1_at_half: float


@dataclass(frozen=True)
class ClassFindings:
    """Everything that a report shows about a task with named labels."""

    confusion: NDArray[np.float64] | None
    """[true, predicted] Number of rows; None for multilabel."""
    rows: list[ClassRow]
    rocs: list[Roc]
    precision_recall: list[PrecisionRecall]
    """Empty for more than two classes."""
    tuning: list[Tuning]
    """Empty if thresholds are not tuned."""
    reliability: Reliability
    temperature: float
    error_tempered: float
    """Calibration error with temperature scaling, fitted on the other half of the rows."""
    ordered: Ordered | None
    thresholds: Thresholds | None


def class_rows(task: TaskRun) -> list[ClassRow]:
    classes = list(range(len(task.names)))
    values = sk.precision_recall_fscore_support(task.targets, task.chosen, labels=classes, zero_division=0)
    decisions = task.kind.decisions(task.names)
    cuts = dict(zip(decisions, task.thresholds.tolist(), strict=True))
    kept = {name for name, few in zip(decisions, task.tuned.kept, strict=True) if few} if task.tuned else set()
    return [
        ClassRow(n, float(p), float(r), float(f), int(s), cuts.get(n), n in kept)
        for n, p, r, f, s in zip(task.names, *values, strict=True)
    ]


def roc(question: BinaryCut) -> Roc:
    false_positives, true_positives, _ = sk.roc_curve(question.true, question.scores)
    kept = np.unique(np.linspace(0, len(false_positives) - 1, ROC_POINTS).astype(int))
    auc = float(sk.roc_auc_score(question.true, question.scores))
    return Roc(question.name, auc, false_positives[kept], true_positives[kept])


def precision_recall(question: BinaryCut) -> PrecisionRecall:
    precision, recall, _ = sk.precision_recall_curve(question.true, question.scores)
    kept = np.unique(np.linspace(0, len(recall) - 1, ROC_POINTS).astype(int))
    average = float(sk.average_precision_score(question.true, question.scores))
    used = [sk.recall_score, sk.precision_score]
    at = [float(measure(question.true, question.chosen, zero_division=0)) for measure in used]
    return PrecisionRecall(question.name, average, recall[kept], precision[kept], (at[0], at[1]))


def tuning(task: TaskRun) -> list[Tuning]:
    found = task.tuned
    if found is None:
        return []
    return [
        Tuning(
            name,
            title(name),
            found.default[name],
            METRICS[name].compute(task.truth, task.predictions),
            found.naive[name],
        )
        for name in task.metrics
    ]


def ordered(task: TaskRun) -> Ordered:
    gaps = np.abs(task.chosen - task.targets)
    constant = np.ptp(task.chosen) == 0 or np.ptp(task.targets) == 0
    correlation = float("nan") if constant else float(stats.pearsonr(task.targets, task.chosen)[0])
    return Ordered(float((gaps**2).mean()), correlation, float((gaps >= 2).mean()))


def thresholds(task: TaskRun) -> Thresholds:
    scores, true = task.predictions[:, task.one], task.targets == task.one
    by = {name: best_threshold(scores, true, name) for name in ("accuracy", "f1-positive")}
    at_half = float(sk.f1_score(true, task.kind.decide(task.predictions) == task.one, zero_division=0))
    return Thresholds(task.names[task.one], by["accuracy"], by["f1-positive"], at_half)
