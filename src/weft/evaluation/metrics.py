"""The metrics: each is one entry of a table."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.data.labels import Kind, Labels, Targets
from weft.evaluation import counted, forms
from weft.evaluation.forms import Form, Tally, Weighted
from weft.evaluation.truth import Predictions, Truth, decide, in_units
from weft.foundation.errors import UserError
from weft.foundation.lazy import LazyFunctions

sk = LazyFunctions("sklearn.metrics")


@dataclass(frozen=True)
class Metric:
    """How a metric is computed for each kind of task, and how its values are to be read."""

    about: str
    """what it is, in one line"""
    forms: Mapping[Kind, Form]
    """by the kinds of tasks that it can score"""
    range: tuple[float, float] = (0.0, 1.0)
    """smallest and largest value"""
    title: str | None = None
    """how tables call it, where its name alone would leave a doubt"""
    is_correlation: bool = False
    """counted as (1 + r) / 2 in an overall score"""
    lower_is_better: bool = False

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(self.forms)

    def compute(self, truth: Truth, predictions: Predictions) -> float:
        """The metric; NaN where it is undefined."""
        return self.forms[truth.kind].compute(truth, predictions)

    def weighted(self, truth: Truth, predictions: Predictions) -> Weighted:
        """The metric as a function of how often each row counts."""
        return self.forms[truth.kind].weighted(truth, predictions)

    def random(self, truth: Truth) -> float:
        """The random baseline: the metric expected of uniform random answers."""
        return self.forms[truth.kind].random(truth)

    def majority(self, truth: Truth) -> float:
        """The majority-class baseline: the metric of always the commonest class, or of the mean."""
        return self.compute(truth, truth.majority())


def _of_classes(form: Form) -> dict[Kind, Form]:
    return {"classification": form, "ordinal": form}


def _averaged(metric: Any, *, macro: bool = False) -> forms.Library:
    """A scikit-learn metric of single classes: that of the positive class if there is one, else macro."""

    def score(found: Tally, truth: Truth) -> float:
        chosen = None if truth.positive is None or macro else [truth.positive]
        return found.of(metric, labels=chosen, average="macro", zero_division=0)

    return score


def _one_or_macro(metric: Any, of: counted.FromLabels) -> dict[Kind, Form]:
    """A metric of the positive class of two, and macro for more classes and for labels."""
    own = _averaged(metric)
    return {**_of_classes(forms.of_classes(own, counted.averaged(of))), "multilabel": forms.of_labels(own, of)}


def _all_right(truth: Truth, p: Predictions) -> counted.Numbers:
    right = (decide(p, truth.targets) == truth.targets).reshape(len(truth), -1)
    found: counted.Numbers = right.all(axis=1).astype(np.float64)
    return found


def _balanced(found: Tally, _: Truth) -> float:
    # balanced_accuracy_score itself warns of every class that is predicted but not there
    return found.of(sk.recall_score, labels=np.unique(found.true), average="macro", zero_division=0)


def _mcc(found: Tally, _: Truth) -> float:
    # of one class alone scikit-learn says 0, too, but warns
    return found.of(sk.matthews_corrcoef) if len(np.union1d(found.true, found.chosen)) > 1 else 0.0


_MACRO_F1 = _averaged(sk.f1_score, macro=True)
_ANY = (0.0, math.inf)
_SIGNED = (-1.0, 1.0)

METRICS: dict[str, Metric] = {
    "accuracy": Metric(
        "share of rows that are right; multilabel: share of rows with every label right",
        {
            **_of_classes(
                forms.of_classes(lambda t, _: t.of(sk.accuracy_score), counted.accuracy, of_row=_all_right),
            ),
            "multilabel": forms.of_rows(
                lambda y, p: forms.tally(y, p).of(sk.accuracy_score), _all_right, lambda y: float(0.5**y.classes)
            ),
        },
    ),
    "balanced-accuracy": Metric(
        "mean recall of the classes that have rows, every class counted alike",
        _of_classes(forms.of_classes(_balanced, counted.balanced_accuracy)),
    ),
    "f1": Metric(
        "mean of the F1 of every class (multilabel: of every label), each counted alike",
        {
            **_of_classes(forms.of_classes(_MACRO_F1, counted.averaged(counted.f1, macro=True))),
            "multilabel": forms.of_labels(_MACRO_F1, counted.f1),
        },
        title="f1 (macro)",
    ),
    "f1-micro": Metric(
        "F1 of all labels of all rows counted together",
        {
            "multilabel": forms.of_labels(
                lambda t, _: t.of(sk.f1_score, average="micro", zero_division=0), counted.f1_micro
            )
        },
        title="f1 (micro)",
    ),
    "f1-positive": Metric(
        "F1 of the class that `positive` names, for two classes",
        _of_classes(forms.of_classes(_averaged(sk.f1_score), counted.averaged(counted.f1))),
    ),
    "precision": Metric(
        "two classes: of the class that `positive` names; otherwise macro, the mean over classes or labels",
        _one_or_macro(sk.precision_score, counted.precision),
    ),
    "recall": Metric(
        "two classes: of the class that `positive` names; otherwise macro, the mean over classes or labels",
        _one_or_macro(sk.recall_score, counted.recall),
    ),
    "mcc": Metric(
        "Matthews' correlation coefficient, 0 for a constant answer",
        _of_classes(forms.of_classes(_mcc, counted.mcc)),
        range=_SIGNED,
        is_correlation=True,
    ),
    "auc": Metric("area under the ROC curve, for two classes", _of_classes(forms.auc())),
    "kappa": Metric(
        "Cohen's kappa with quadratic weights",
        {"ordinal": forms.of_classes(lambda t, _: t.of(sk.cohen_kappa_score, weights="quadratic"), counted.kappa)},
        range=_SIGNED,
    ),
    "class-distance": Metric(
        "how many classes off, on average",
        {
            "ordinal": forms.of_classes(
                lambda t, _: t.of(sk.mean_absolute_error),
                counted.class_distance,
                of_row=lambda y, p: np.abs(decide(p, y.targets) - y.targets).astype(np.float64),
            )
        },
        range=_ANY,
        lower_is_better=True,
    ),
    "pearson": Metric("Pearson's correlation", {"regression": forms.pearson()}, range=_SIGNED, is_correlation=True),
    "spearman": Metric(
        "Spearman's rank correlation", {"regression": forms.spearman()}, range=_SIGNED, is_correlation=True
    ),
    "mse": Metric(
        "mean squared error, in the label's own units",
        {
            "regression": forms.of_rows(
                lambda y, p: float(sk.mean_squared_error(y.targets, p)),
                lambda y, p: (y.targets - p) ** 2,
                forms.random_mse,
            )
        },
        range=_ANY,
        lower_is_better=True,
    ),
}

DEFAULTS: dict[str, tuple[str, ...]] = {
    "classification": ("accuracy", "f1"),
    "ordinal": ("accuracy", "f1", "class-distance"),
    "multilabel": ("f1-micro", "f1", "accuracy"),
    "regression": ("pearson", "spearman", "mse"),
}
"""the metrics of each kind; the first is the primary one"""

OF_ONE_CLASS = ("f1-positive", "precision", "recall")
"""the metrics that, of two classes, are about the one that `positive` names"""


def choose_metrics(labels: Labels, wanted: Sequence[str] | None, task: str) -> tuple[str, ...]:
    """A task's metrics, the primary one first."""
    if not wanted:
        return DEFAULTS[labels.kind]
    key = f"tasks.{task}.metrics"
    fitting = [name for name, metric in METRICS.items() if labels.kind in metric.kinds]
    for name in wanted:
        if name not in fitting:
            raise UserError(f"{key}: found {name!r}, expected some of {', '.join(fitting)} for a {labels.kind} task")
    if labels.kind in ("classification", "ordinal"):
        for name in wanted:
            _require_classes(labels, name, key)
    if METRICS[wanted[0]].lower_is_better:
        raise UserError(
            f"{key}: the first one counts in the overall score, where more is better; {wanted[0]!r} cannot stand there"
        )
    return tuple(wanted)


def _require_classes(labels: Labels, name: str, key: str) -> None:
    classes = len(labels.names)
    if name == "f1-positive" and classes != 2:
        raise UserError(
            f"{key}: 'f1-positive' is for two classes, but the task has {classes}; "
            "'f1' is the mean over classes, and the report shows the F1 of each"
        )
    if name == "auc" and classes != 2:
        raise UserError(f"{key}: 'auc' is for two classes, but the task has {classes}")
    if name in OF_ONE_CLASS and classes == 2 and labels.positive is None:
        one, two = (f"`positive = {json.dumps(label, ensure_ascii=False)}`" for label in labels.names)
        raise UserError(f"{key}: {name!r} is about one of the two classes; write {one} or {two} beside it")


def title(name: str) -> str:
    """How tables call a metric."""
    return METRICS[name].title or name


def score(labels: Labels, names: Sequence[str], targets: Targets, predictions: Predictions) -> dict[str, float]:
    """The named metrics of a task, and the number of rows; a regression's in the label's own units."""
    truth, answers = Truth.of(labels, targets), in_units(labels, predictions)
    return {name: METRICS[name].compute(truth, answers) for name in names} | {"n": len(targets)}


def overall(scores: dict[str, dict[str, float]], primary: dict[str, str]) -> float:
    """Mean over tasks of the primary metric, a correlation r counted as (1 + r) / 2; NaN if any is undefined."""
    values = []
    for task, metric in primary.items():
        value = scores[task][metric]
        values.append((1 + value) / 2 if METRICS[metric].is_correlation else value)
    return float(np.mean(values))


def overall_range(primary: Mapping[str, str]) -> tuple[float, float]:
    """Smallest and largest overall score that these primary metrics can make."""
    ranges = [(0.0, 1.0) if METRICS[name].is_correlation else METRICS[name].range for name in primary.values()]
    low, high = np.mean(ranges, axis=0)
    return float(low), float(high)


def overall_formula(primary: Mapping[str, str]) -> str:
    """How the overall score of these tasks is formed, in words."""
    parts = [
        f"(1 + {task} {title(metric)}) / 2" if METRICS[metric].is_correlation else f"{task} {title(metric)}"
        for task, metric in primary.items()
    ]
    return f"overall = mean of {', '.join(parts)}" if len(parts) > 1 else f"overall = {parts[0]}"


def explain(measured: Mapping[str, Sequence[str]], positive: Mapping[str, str]) -> list[str]:
    """What a table of scores must say below it: how overall is formed, and what its metrics average over.

    `measured` has the metrics of each task, the primary one first; `positive` the positive class of those with one.
    """
    lines = [overall_formula({task: names[0] for task, names in measured.items()})]
    used = dict.fromkeys(name for names in measured.values() for name in names)
    lines += [f"{title(name)}: {METRICS[name].about}" for name in used if name == "f1" or name in OF_ONE_CLASS]
    return lines + [f"positive class of {task}: {name}" for task, name in positive.items()]
