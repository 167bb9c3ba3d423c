"""Multilabel classification: any number of labels per row."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from weft.kinds import counted, forms, noise
from weft.kinds.base import Answer
from weft.kinds.cells import divide
from weft.kinds.forms import Form
from weft.kinds.labels import Labels
from weft.kinds.probability import CLOSE, TINY, ProbabilityKind
from weft.kinds.truth import Predictions, Targets, Thresholds, Truth

LIKELY = 0.5
"""decision threshold: a label is predicted if its probability is above it"""


class Multilabel(ProbabilityKind):
    """A target has a 0 or 1 per label; a prediction has an independent probability per label."""

    name = "multilabel"
    distills = True
    default_loss = "binary-cross-entropy"
    default_metrics = ("f1-micro", "f1", "accuracy")
    metrics: ClassVar[Mapping[str, Form]] = {
        "accuracy": forms.of_rows(
            forms.of_decisions("accuracy_score"), forms.all_right, lambda truth: float(0.5**truth.classes)
        ),
        "f1": forms.of_labels(forms.averaged("f1_score", macro=True), counted.f1),
        "f1-micro": forms.of_labels(forms.library("f1_score", average="micro", zero_division=0), counted.f1_micro),
        "precision": forms.of_labels(forms.averaged("precision_score"), counted.precision),
        "recall": forms.of_labels(forms.averaged("recall_score"), counted.recall),
    }
    target_type = np.float64
    activation = "sigmoid"

    def check_columns(self, columns: int) -> None:
        """Accept one column, or one column per label."""
        super().check_columns(min(columns, 1))

    def expected(self, labels: Labels) -> str:
        return f"any of {self.shown_names(labels)}"

    def parts(self, cell: str) -> list[str]:
        return divide(cell)

    def mapped(self, cell: str, names: Mapping[str, str]) -> str:
        return json.dumps([names.get(part, part) for part in divide(cell)]) if names else cell

    def target(self, cell: str, labels: Labels) -> list[float] | None:
        numbers = [self.number(name, labels) for name in divide(cell)]
        if None in numbers:
            return None
        return [float(i in numbers) for i in range(len(labels.names))]

    def blank(self, labels: Labels) -> list[float]:
        return [0.0] * len(labels.names)

    def count(self, targets: Targets, classes: int) -> NDArray[np.int64]:  # noqa: ARG002
        rows: NDArray[np.int64] = targets.sum(axis=0).astype(np.int64)
        return rows

    def divergence(self, one: Tensor, two: Tensor) -> Tensor:
        """Symmetrized KL divergence of Bernoulli distributions, summed over labels."""
        p, q = one.clamp(CLOSE, 1 - CLOSE), two.clamp(CLOSE, 1 - CLOSE)
        return ((p - q) * (torch.logit(p) - torch.logit(q))).sum(dim=1)

    def imitation(self, student: Tensor, teacher: Tensor, temperature: float) -> Tensor:
        """Soft binary cross-entropy of the predictions at temperature T, times `T^2`, averaged over labels."""
        ours, theirs = (torch.logit(p.clamp(CLOSE, 1 - CLOSE)) / temperature for p in (student, teacher))
        losses = F.binary_cross_entropy_with_logits(ours, theirs.sigmoid(), reduction="none")
        return temperature**2 * losses.mean(dim=1)

    def decisions(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(names)

    def yes_scores(self, predictions: Predictions) -> Predictions:
        return predictions

    def is_yes(self, targets: Targets) -> NDArray[np.bool_]:
        return targets > 0.5

    def temper_thresholds(self, thresholds: Thresholds, temperature: float) -> Thresholds:
        return self.temper(thresholds, temperature)

    def decide(self, predictions: Predictions, thresholds: Thresholds | None = None) -> NDArray[np.int64]:
        """[n, labels] which labels are above their thresholds, by default more likely than not"""
        return (predictions > (LIKELY if thresholds is None else thresholds)).astype(np.int64)

    def temper(self, predictions: Predictions, temperature: float) -> Predictions:
        yes, no = (np.log(np.clip(p, TINY, 1.0)) / temperature for p in (predictions, 1 - predictions))
        tempered: Predictions = 1 / (1 + np.exp(no - yes))
        return tempered

    def truth_probabilities(self, predictions: Predictions, targets: Targets) -> NDArray[np.float64]:
        return np.where(targets > 0.5, predictions, 1 - predictions)

    def confidence(self, predictions: Predictions, targets: Targets) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Every label of a row counts as one prediction."""
        sure = np.maximum(predictions, 1 - predictions)
        return sure.ravel(), ((predictions > LIKELY) == (targets > 0.5)).ravel()

    def majority(self, truth: Truth) -> Predictions:
        """Predict a label if it applies to more than half of the rows."""
        return np.tile((truth.targets.mean(axis=0) > 0.5).astype(np.float64), (len(truth), 1))

    def answer(self, labels: Labels, value: Any) -> Answer:
        probabilities = {name: float(p) for name, p in zip(labels.names, value, strict=True)}
        cuts = labels.thresholds or [LIKELY] * len(probabilities)
        chosen = [name for (name, p), cut in zip(probabilities.items(), cuts, strict=True) if p > cut]
        return chosen, float(value.max()), probabilities

    def moves(self, labels: Labels, before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: ARG002
        """Largest absolute difference of a label's probability."""
        return np.asarray(np.abs(before - after).max(axis=1))

    def differ(self, labels: Labels, one: Targets, two: Targets) -> NDArray[np.bool_]:  # noqa: ARG002
        return np.asarray((one != two).any(axis=1))

    def cross_predict(
        self, labels: Labels, targets: Targets, features: noise.Features, folds: noise.Folds
    ) -> Predictions:
        """A logistic regression for each label."""
        on = targets.astype(np.int64)
        each = [noise.class_probabilities(features, on[:, i], 2, folds)[:, 1] for i in range(len(labels.names))]
        return np.stack(each, axis=1)

    def suspects(self, targets: Targets, predictions: Predictions) -> noise.Suspects:
        """Every label is a classification into 0 and 1. A row is as good as its worst label."""
        on = targets.astype(np.int64)
        each = [noise.suspicious_classes(on[:, i], np.stack([1 - p, p], axis=1)) for i, p in enumerate(predictions.T)]
        return noise.Suspects(
            np.any([label.flagged for label in each], axis=0), np.min([label.quality for label in each], axis=0)
        )

    @property
    def cell_type(self) -> pa.DataType:
        return pa.list_(pa.string())

    def cells(self, values: Targets, names: Sequence[str]) -> list[list[str]]:
        return [[name for name, on in zip(names, row, strict=True) if on] for row in values]

    def read_cells(self, cells: Sequence[Any], names: Sequence[str]) -> NDArray[np.float64]:
        number = {name: i for i, name in enumerate(names)}
        on = np.zeros((len(cells), len(names)))
        for row, own in enumerate(cells):
            on[row, [number[name] for name in own]] = 1
        return on

    def shown(self, names: Sequence[str], answer: Any) -> str:
        return ", ".join(name for name, on in zip(names, answer, strict=True) if on) or "none"

    def reading_code(self, labels: Labels) -> list[str]:
        cuts = [round(cut, 6) for cut in labels.thresholds or [LIKELY] * len(labels.names)]
        return [
            f"thresholds = {cuts}",
            "for row in logits.sigmoid().tolist():",
            "    print([model.config.id2label[i] for i, p in enumerate(row) if p > thresholds[i]])",
        ]

    def describe_logits(self, labels: Labels) -> str:
        names = ", ".join(f"`{label}`" for label in labels.names)
        text = f"The sigmoid of `logits` is the probability of each label: {names}. Any number of them may apply."
        return text if labels.thresholds is None else f"{text} The thresholds above were tuned on the dev rows."
