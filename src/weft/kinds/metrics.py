"""The metrics: each is one entry of a table; how one is computed, the kinds say that have it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weft.foundation.errors import UserError
from weft.kinds import KINDS
from weft.kinds.forms import Form, Weighted
from weft.kinds.labels import Labels
from weft.kinds.truth import Predictions, Targets, Truth


@dataclass(frozen=True)
class Metric:
    """What a metric is and how its values are to be read."""

    name: str
    about: str
    """what it is, in one line"""
    range: tuple[float, float] = (0.0, 1.0)
    """smallest and largest value"""
    title: str | None = None
    """how tables call it, where its name alone would leave a doubt"""
    is_correlation: bool = False
    """counted as (1 + r) / 2 in an overall score"""
    lower_is_better: bool = False
    is_explained: bool = False
    """whether a table of scores says below it what the metric averages over"""

    @property
    def kinds(self) -> tuple[str, ...]:
        """the kinds of tasks that it can score"""
        return tuple(kind.name for kind in KINDS.values() if self.name in kind.metrics)

    def form(self, truth: Truth) -> Form:
        """How it is computed for labels of this kind."""
        return truth.kind.metrics[self.name]

    def compute(self, truth: Truth, predictions: Predictions) -> float:
        """The metric; NaN where it is undefined."""
        return self.form(truth).compute(truth, predictions)

    def weighted(self, truth: Truth, predictions: Predictions) -> Weighted:
        """The metric as a function of how often each row counts."""
        return self.form(truth).weighted(truth, predictions)

    def random(self, truth: Truth) -> float:
        """The random baseline: the metric expected of uniform random answers."""
        return self.form(truth).random(truth)

    def majority(self, truth: Truth) -> float:
        """The majority-class baseline: the metric of always the commonest class, or of the mean."""
        return self.compute(truth, truth.majority())


_ANY = (0.0, math.inf)
_SIGNED = (-1.0, 1.0)
_ONE_OR_MACRO = "two classes: of the class that `positive` names; otherwise macro, the mean over classes or labels"

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "share of rows that are right; multilabel: share of rows with every label right"),
        Metric("balanced-accuracy", "mean recall of the classes that have rows, every class counted alike"),
        Metric(
            "f1",
            "mean of the F1 of every class (multilabel: of every label), each counted alike",
            title="f1 (macro)",
            is_explained=True,
        ),
        Metric("f1-micro", "F1 of all labels of all rows counted together", title="f1 (micro)"),
        Metric("f1-positive", "F1 of the class that `positive` names, for two classes", is_explained=True),
        Metric("precision", _ONE_OR_MACRO, is_explained=True),
        Metric("recall", _ONE_OR_MACRO, is_explained=True),
        Metric("mcc", "Matthews' correlation coefficient, 0 for a constant answer", _SIGNED, is_correlation=True),
        Metric("auc", "area under the ROC curve, for two classes"),
        Metric("kappa", "Cohen's kappa with quadratic weights", _SIGNED),
        Metric("class-distance", "how many classes off, on average", _ANY, lower_is_better=True),
        Metric("pearson", "Pearson's correlation", _SIGNED, is_correlation=True),
        Metric("spearman", "Spearman's rank correlation", _SIGNED, is_correlation=True),
        Metric("mse", "mean squared error, in the label's own units", _ANY, lower_is_better=True),
    )
}


def choose_metrics(labels: Labels, wanted: Sequence[str] | None, task: str) -> tuple[str, ...]:
    """A task's metrics, the primary one first."""
    kind = labels.kind
    if not wanted:
        return kind.default_metrics
    key = f"tasks.{task}.metrics"
    for name in wanted:
        if name not in kind.metrics:
            raise UserError(f"{key}: found {name!r}, expected some of {', '.join(kind.metrics)} for a {kind.name} task")
    for name in wanted:
        kind.check_metric(labels, name, key)
    if METRICS[wanted[0]].lower_is_better:
        raise UserError(
            f"{key}: the first one counts in the overall score, where more is better; {wanted[0]!r} cannot stand there"
        )
    return tuple(wanted)


def title(name: str) -> str:
    """How tables call a metric."""
    return METRICS[name].title or name


def score(labels: Labels, names: Sequence[str], targets: Targets, predictions: Predictions) -> dict[str, float]:
    """The named metrics of a task, and the number of rows; a regression's in the label's own units."""
    truth, answers = Truth.of(labels, targets), labels.in_units(predictions)
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
    lines += [f"{title(name)}: {METRICS[name].about}" for name in used if METRICS[name].is_explained]
    return lines + [f"positive class of {task}: {name}" for task, name in positive.items()]
