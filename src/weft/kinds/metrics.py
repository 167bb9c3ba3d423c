"""The registry of metrics. Each kind of label defines how its metrics are computed."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weft.foundation.errors import UserError
from weft.kinds import KINDS
from weft.kinds.forms import Form, Weighted
from weft.kinds.labels import Labels
from weft.kinds.truth import Predictions, Targets, Thresholds, Truth


@dataclass(frozen=True)
class Metric:
    """A metric and how to interpret its values."""

    name: str
    """its name in recipes"""
    about: str
    """description in one line"""
    range: tuple[float, float] = (0.0, 1.0)
    """smallest and largest value"""
    title: str | None = None
    """its name in tables, where the recipe name is ambiguous"""
    is_correlation: bool = False
    """whether it counts as (1 + r) / 2 in the overall score"""
    lower_is_better: bool = False
    """whether smaller values are better"""
    is_explained: bool = False
    """whether tables of scores describe the metric in a note"""

    @property
    def kinds(self) -> tuple[str, ...]:
        """the kinds of tasks that support it"""
        return tuple(kind.name for kind in KINDS.values() if self.name in kind.metrics)

    def form(self, truth: Truth) -> Form:
        """Return how it is computed for this kind of labels."""
        return truth.kind.metrics[self.name]

    def compute(self, truth: Truth, predictions: Predictions) -> float:
        """Compute the metric; NaN where it is undefined."""
        return self.form(truth).compute(truth, predictions)

    def weighted(self, truth: Truth, predictions: Predictions) -> Weighted:
        """Return the metric as a function of the count of each row."""
        return self.form(truth).weighted(truth, predictions)

    def random(self, truth: Truth) -> float:
        """Return the random baseline: the expected metric of uniform random predictions."""
        return self.form(truth).random(truth)

    def majority(self, truth: Truth) -> float:
        """Return the majority-class baseline; for a regression, the metric of predicting the mean."""
        return self.compute(truth, truth.majority())


_ANY = (0.0, math.inf)
_SIGNED = (-1.0, 1.0)
_ONE_OR_MACRO = "two classes: of the class that `positive` names; otherwise macro, the mean over classes or labels"

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "share of correct rows; multilabel: share of rows with every label correct"),
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
        Metric("mcc", "Matthews correlation coefficient, 0 for constant predictions", _SIGNED, is_correlation=True),
        Metric("auc", "area under the ROC curve, for two classes"),
        Metric("entity-f1", "F1 of spans of words: type, first and last word must be correct", is_explained=True),
        Metric("entity-precision", "share of the predicted spans that are correct"),
        Metric("entity-recall", "share of the true spans that are predicted"),
        Metric("token-accuracy", "share of words with the correct tag"),
        Metric("kappa", "Cohen's kappa with quadratic weights", _SIGNED),
        Metric("class-distance", "mean absolute difference of class numbers", _ANY, lower_is_better=True),
        Metric("pearson", "Pearson's correlation", _SIGNED, is_correlation=True),
        Metric("spearman", "Spearman's rank correlation", _SIGNED, is_correlation=True),
        Metric("recall-at-1", "share of a first text's matches that rank first", title="recall@1"),
        Metric("recall-at-10", "share of a first text's matches among the 10 nearest candidates", title="recall@10"),
        Metric("mrr", "mean reciprocal rank of the best-ranked match"),
        Metric("ndcg-at-10", "discounted cumulative gain of the 10 nearest, relative to the ideal", title="nDCG@10"),
        Metric("mse", "mean squared error, in the label's own units", _ANY, lower_is_better=True),
    )
}


def choose_metrics(labels: Labels, wanted: Sequence[str] | None, task: str) -> tuple[str, ...]:
    """Return and validate a task's metrics, the primary metric first."""
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
            f"{key}: the first metric counts in the overall score, so higher must be better; found {wanted[0]!r}, "
            "where lower is better; put another metric first"
        )
    return tuple(wanted)


def title(name: str) -> str:
    """Return the name of a metric in tables."""
    return METRICS[name].title or name


def score(
    labels: Labels,
    names: Sequence[str],
    targets: Targets,
    predictions: Predictions,
    thresholds: Thresholds | None = None,
) -> dict[str, float]:
    """Compute the named metrics of a task, and `n`, the number of rows; a regression is scored in the label's units.

    `thresholds` default to those of the labels.
    """
    truth, answers = Truth.of(labels, targets, thresholds), labels.in_units(predictions)
    return {name: METRICS[name].compute(truth, answers) for name in names} | {"n": len(targets)}


def counted(primary: Mapping[str, str], auxiliary: Collection[str]) -> dict[str, str]:
    """Return the primary metrics that count in the overall score: those of all tasks if every one is auxiliary."""
    return {task: metric for task, metric in primary.items() if task not in auxiliary} or dict(primary)


def overall(scores: dict[str, dict[str, float]], primary: dict[str, str]) -> float:
    """Mean over tasks of the primary metric, a correlation r counted as (1 + r) / 2; NaN if any is undefined."""
    values = []
    for task, metric in primary.items():
        value = scores[task][metric]
        values.append((1 + value) / 2 if METRICS[metric].is_correlation else value)
    return float(np.mean(values))


def overall_range(primary: Mapping[str, str]) -> tuple[float, float]:
    """Return the smallest and largest possible overall score of these primary metrics."""
    ranges = [(0.0, 1.0) if METRICS[name].is_correlation else METRICS[name].range for name in primary.values()]
    low, high = np.mean(ranges, axis=0)
    return float(low), float(high)


def overall_formula(primary: Mapping[str, str]) -> str:
    """Return the formula of the overall score as text."""
    parts = [
        f"(1 + {task} {title(metric)}) / 2" if METRICS[metric].is_correlation else f"{task} {title(metric)}"
        for task, metric in primary.items()
    ]
    return f"overall = mean of {', '.join(parts)}" if len(parts) > 1 else f"overall = {parts[0]}"


def explain(
    measured: Mapping[str, Sequence[str]], positive: Mapping[str, str], auxiliary: Collection[str] = ()
) -> list[str]:
    """Return the notes below a table of scores: the formula of overall, and what its metrics average over.

    `measured`: the metrics of each task, the primary metric first. `positive`: the positive class of tasks that have
    one. `auxiliary` tasks do not count in overall.
    """
    lines = [overall_formula(counted({task: names[0] for task, names in measured.items()}, auxiliary))]
    used = dict.fromkeys(name for names in measured.values() for name in names)
    lines += [f"{title(name)}: {METRICS[name].about}" for name in used if METRICS[name].is_explained]
    return lines + [f"positive class of {task}: {name}" for task, name in positive.items()]
