"""The scores of a split: what the metrics say of all tasks' predictions."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from weft.data.dataset import Dataset
from weft.evaluation.plane import Plane
from weft.evaluation.table import HEADER, score_rows, score_text
from weft.foundation.notebook import html_table
from weft.kinds.metrics import overall, score
from weft.kinds.truth import Predictions


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Scores of all tasks after some steps; printed, it is a table."""

    step: int
    scores: dict[str, dict[str, float]]
    overall: float
    predictions: dict[str, Predictions]
    losses: dict[str, float] = field(default_factory=dict)
    """each task's loss over all rows, without dropout and regularizer; in training only, as the next"""
    planes: dict[str, Plane] = field(default_factory=dict)
    """each task's rows as their vectors lie in two dimensions"""
    selection: float = math.nan
    """the overall score of the tasks that train, by which the best checkpoint is chosen"""
    untrained: tuple[str, ...] = ()
    """tasks that are scored but get no batch in this run"""

    def __repr__(self) -> str:
        return score_text(self.scores, self.overall)

    def _repr_html_(self) -> str:
        return html_table("Evaluation", HEADER, score_rows(self.scores, self.overall))


def scored(
    step: int,
    datasets: Mapping[str, Dataset],
    metrics: Mapping[str, Sequence[str]],
    predictions: dict[str, Predictions],
) -> Evaluation:
    """The scores of predictions; the first of each task's `metrics` counts in the overall score."""
    scores = {
        name: score(dataset.labels, metrics[name], dataset.targets, predictions[name])
        for name, dataset in datasets.items()
    }
    return Evaluation(step, scores, overall(scores, {name: metrics[name][0] for name in datasets}), predictions)


def dead_heads(evaluation: Evaluation, dev: Mapping[str, Dataset]) -> list[str]:
    """What must not pass for a score: undefined metrics, and heads that say the same of every row."""
    found = []
    for task in dev:
        undefined = [metric for metric, value in evaluation.scores[task].items() if np.isnan(value)]
        if undefined:
            found.append(
                f"{task}: {', '.join(undefined)} cannot be computed (constant predictions or labels); "
                "the overall score is undefined, and this evaluation counts as the worst"
            )
            continue
        labels = dev[task].labels
        name = labels.kind.constant_answer(labels, evaluation.predictions[task], dev[task].targets)
        if name is not None:
            found.append(f"{task}: predicts {name!r} for every dev row; its score is that of a constant answer")
    return found
