"""Scores of all tasks on a split."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from weft.data.dataset import Dataset
from weft.evaluation.plane import Plane
from weft.evaluation.table import HEADER, score_rows, score_text
from weft.evaluation.thresholds import TunedThresholds
from weft.foundation.notebook import html_table
from weft.kinds.metrics import counted, overall, score
from weft.kinds.truth import Predictions, Thresholds, Truth


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Scores of all tasks after a number of steps. Its `repr` is a table."""

    step: int
    """optimizer steps done"""
    scores: dict[str, dict[str, float]]
    """task -> metric -> value, and `n` rows"""
    overall: float
    """mean of the primary metric over the tasks that count, a correlation r counted as (1 + r) / 2"""
    predictions: dict[str, Predictions]
    """task -> [n, classes] probabilities, or [n] numbers"""
    losses: dict[str, float] = field(default_factory=dict)
    """each task's loss over all rows, without dropout and regularizer; empty outside of training"""
    planes: dict[str, Plane] = field(default_factory=dict)
    """each task's pooled vectors, projected on two principal components; empty outside of training"""
    selection: float = math.nan
    """overall score of the trained tasks, which selects the best checkpoint"""
    untrained: tuple[str, ...] = ()
    """tasks that are scored but not trained in this run"""
    auxiliary: tuple[str, ...] = ()
    """tasks that do not count in the overall score"""
    selected_on: dict[str, int] = field(default_factory=dict)
    """task -> rows of the sample that selected the checkpoint; empty if the rows of this evaluation did"""
    tuned: dict[str, TunedThresholds] = field(default_factory=dict)
    """thresholds of the tasks that tune them, whose scores are cross-fitted; empty outside of training"""

    def truth(self, dataset: Dataset) -> Truth:
        """Return what the predictions for a task's rows are scored with."""
        tuned = self.tuned.get(dataset.task)
        return Truth.of(dataset.labels, dataset.targets, None if tuned is None else tuned.cross_fitted)

    def __repr__(self) -> str:
        return score_text(self.scores, self.overall)

    def _repr_html_(self) -> str:
        return html_table("Evaluation", HEADER, score_rows(self.scores, self.overall))


def scored(
    step: int,
    datasets: Mapping[str, Dataset],
    metrics: Mapping[str, Sequence[str]],
    predictions: dict[str, Predictions],
    thresholds: Mapping[str, Thresholds] | None = None,
    auxiliary: Collection[str] = (),
) -> Evaluation:
    """Score predictions; the first of each task's `metrics` counts in the overall score, unless it is `auxiliary`.

    `thresholds` by task default to those of its labels.
    """
    cuts = thresholds or {}
    scores = {
        name: score(dataset.labels, metrics[name], dataset.targets, predictions[name], cuts.get(name))
        for name, dataset in datasets.items()
    }
    primary = counted({name: metrics[name][0] for name in datasets}, auxiliary)
    aside = tuple(name for name in datasets if name not in primary)
    return Evaluation(step, scores, overall(scores, primary), predictions, auxiliary=aside)


def dead_heads(evaluation: Evaluation, dev: Mapping[str, Dataset]) -> list[str]:
    """Return warnings about undefined metrics and about heads that predict the same label for every row."""
    found = []
    for task in dev:
        undefined = [metric for metric, value in evaluation.scores[task].items() if np.isnan(value)]
        if undefined:
            found.append(
                f"{task}: {', '.join(undefined)} cannot be computed (constant predictions or labels); "
                "the overall score is undefined, and this evaluation ranks last"
            )
            continue
        labels = dev[task].labels
        chosen = evaluation.truth(dev[task]).decide(labels.in_units(evaluation.predictions[task]))
        name = labels.kind.constant_answer(labels, chosen, dev[task].targets)
        if name is not None:
            found.append(f"{task}: predicts {name!r} for every dev row; its score is that of a constant prediction")
    return found
