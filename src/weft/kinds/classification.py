"""Classification: one of several classes per row."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from torch import Tensor

from weft.foundation.errors import UserError
from weft.kinds import counted, forms, noise
from weft.kinds.base import Answer
from weft.kinds.cells import canonical
from weft.kinds.forms import Form
from weft.kinds.labels import Labels
from weft.kinds.probability import CLOSE, TINY, ProbabilityKind
from weft.kinds.truth import Predictions, Targets, Thresholds, Truth


class Classification(ProbabilityKind):
    """A target is a class number; a prediction has one probability per class."""

    name = "classification"
    has_one_class = True
    distills = True
    default_loss = "cross-entropy"
    default_metrics: ClassVar[tuple[str, ...]] = ("accuracy", "f1")
    metrics: ClassVar[Mapping[str, Form]] = {
        "accuracy": forms.of_classes(forms.library("accuracy_score"), counted.accuracy, of_row=forms.all_right),
        "balanced-accuracy": forms.of_classes(forms.balanced_accuracy, counted.balanced_accuracy),
        "f1": forms.of_classes(forms.averaged("f1_score", macro=True), counted.averaged(counted.f1, macro=True)),
        "f1-positive": forms.of_classes(forms.averaged("f1_score"), counted.averaged(counted.f1)),
        "precision": forms.of_classes(forms.averaged("precision_score"), counted.averaged(counted.precision)),
        "recall": forms.of_classes(forms.averaged("recall_score"), counted.averaged(counted.recall)),
        "mcc": forms.of_classes(forms.mcc, counted.mcc),
        "auc": forms.auc(),
    }
    of_one_class = ("f1-positive", "precision", "recall")
    """the metrics that score only the `positive` class of a binary task"""
    tuned_for = ("accuracy", "balanced-accuracy", "f1", "mcc")
    target_type = np.int64
    activation = "softmax"

    def expected(self, labels: Labels) -> str:
        return f"one of {self.shown_names(labels)}"

    def counted(self, labels: Labels) -> str:
        return f"{len(labels.names)} classes"

    def parts(self, cell: str) -> list[str]:
        return [canonical(cell)]

    def mapped(self, cell: str, names: Mapping[str, str]) -> str:
        return names.get(canonical(cell), cell)

    def target(self, cell: str, labels: Labels) -> float | None:
        return self.number(canonical(cell), labels)

    def blank(self, labels: Labels) -> float:  # noqa: ARG002
        return 0.0

    def count(self, targets: Targets, classes: int) -> NDArray[np.int64]:
        return np.bincount(targets.astype(np.int64), minlength=classes)

    def divergence(self, one: Tensor, two: Tensor) -> Tensor:
        """Symmetrized KL divergence: KL(p, q) + KL(q, p)."""
        p, q = one.clamp(CLOSE, 1 - CLOSE), two.clamp(CLOSE, 1 - CLOSE)
        return ((p - q) * (p.log() - q.log())).sum(dim=1)

    def imitation(self, student: Tensor, teacher: Tensor, temperature: float) -> Tensor:
        """Soft cross-entropy `-T^2 sum_i q_i log p_i` of the predictions at temperature T.

        `T^2` keeps the size of the gradient independent of T. (Hinton, Vinyals and Dean, "Distilling the Knowledge in
        a Neural Network", 2015)
        """
        ours = (student.clamp(min=TINY).log() / temperature).log_softmax(dim=1)
        theirs = (teacher.clamp(min=TINY).log() / temperature).softmax(dim=1)
        return -(temperature**2) * (theirs * ours).sum(dim=1)

    def decisions(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the second of two classes; more classes are not a binary decision."""
        return (names[1],) if len(names) == 2 else ()

    def yes_scores(self, predictions: Predictions) -> Predictions:
        return predictions[:, 1:]

    def is_yes(self, targets: Targets) -> NDArray[np.bool_]:
        yes: NDArray[np.bool_] = targets[:, None] == 1
        return yes

    def temper_thresholds(self, thresholds: Thresholds, temperature: float) -> Thresholds:
        return self.temper(np.stack([1 - thresholds, thresholds], axis=-1), temperature)[..., 1]

    def decide(self, predictions: Predictions, thresholds: Thresholds | None = None) -> NDArray[np.int64]:
        """[n] the most probable class; the second of two classes if its probability is above its threshold"""
        if thresholds is not None:
            return (predictions[:, 1] > thresholds[..., 0]).astype(np.int64)
        chosen: NDArray[np.int64] = predictions.argmax(axis=1)
        return chosen

    def temper(self, predictions: Predictions, temperature: float) -> Predictions:
        powers = np.log(np.clip(predictions, TINY, 1.0)) / temperature
        powers = np.exp(powers - powers.max(axis=-1, keepdims=True))
        shared: Predictions = powers / powers.sum(axis=-1, keepdims=True)
        return shared

    def truth_probabilities(self, predictions: Predictions, targets: Targets) -> NDArray[np.float64]:
        true: NDArray[np.float64] = predictions[np.arange(len(targets)), targets.astype(np.int64)]
        return true

    def confidence(self, predictions: Predictions, targets: Targets) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        return predictions.max(axis=1), self.decide(predictions) == targets

    def majority(self, truth: Truth) -> Predictions:
        commonest = self.count(truth.targets, truth.classes).argmax()
        return np.tile(np.eye(truth.classes)[commonest], (len(truth), 1))

    def relevance(self, labels: Labels, answer: Answer) -> float | None:
        """Return the probability of the positive class of two; by default the second."""
        _, _, probabilities = answer
        if not labels.is_binary or probabilities is None:
            return None
        return probabilities[labels.positive or labels.names[1]]

    def constant_answer(self, labels: Labels, chosen: Targets, targets: Targets) -> str | None:
        seen = np.unique(chosen)
        return labels.names[int(seen[0])] if len(seen) == 1 and len(np.unique(targets)) > 1 else None

    def check_metric(self, labels: Labels, metric: str, key: str) -> None:
        classes = len(labels.names)
        if metric == "f1-positive" and classes != 2:
            raise UserError(
                f"{key}: 'f1-positive' is for two classes, but the task has {classes}; "
                "'f1' is the mean over classes, and the report shows the F1 of each"
            )
        if metric == "auc" and classes != 2:
            raise UserError(f"{key}: 'auc' is for two classes, but the task has {classes}")
        if metric in self.of_one_class and classes == 2 and labels.positive is None:
            one, two = (f"`positive = {json.dumps(label, ensure_ascii=False)}`" for label in labels.names)
            raise UserError(f"{key}: {metric!r} needs a positive class; add {one} or {two} to the task")

    def answer(self, labels: Labels, value: Any) -> Answer:
        best = int(value.argmax() if labels.thresholds is None else value[1] > labels.thresholds[0])
        probabilities = {name: float(p) for name, p in zip(labels.names, value, strict=True)}
        return labels.names[best], float(value[best]), probabilities

    def moves(self, labels: Labels, before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: ARG002
        """Total variation distance: half of the sum of absolute differences."""
        return np.asarray(np.abs(before - after).sum(axis=1) / 2)

    def differ(self, labels: Labels, one: Targets, two: Targets) -> NDArray[np.bool_]:  # noqa: ARG002
        return np.asarray(one != two)

    def cross_predict(
        self, labels: Labels, targets: Targets, features: noise.Features, folds: noise.Folds
    ) -> Predictions:
        return noise.class_probabilities(features, targets.astype(np.int64), len(labels.names), folds)

    def suspects(self, targets: Targets, predictions: Predictions) -> noise.Suspects:
        return noise.suspicious_classes(targets.astype(np.int64), predictions)

    @property
    def cell_type(self) -> pa.DataType:
        return pa.string()

    def cells(self, values: Targets, names: Sequence[str]) -> list[str]:
        return [names[int(number)] for number in values]

    def read_cells(self, cells: Sequence[Any], names: Sequence[str]) -> NDArray[np.int64]:
        number = {name: i for i, name in enumerate(names)}
        return np.array([number[name] for name in cells], dtype=np.int64)

    def shown(self, names: Sequence[str], answer: Any) -> str:
        return names[int(answer)]

    def reading_code(self, labels: Labels) -> list[str]:
        chosen = "row.argmax()" if labels.thresholds is None else f"row[1] > {labels.thresholds[0]:.6f}"
        return [
            "for row in logits.softmax(dim=1):",
            f"    chosen = int({chosen})",
            "    print(model.config.id2label[chosen], float(row[chosen]))",
        ]

    def describe_logits(self, labels: Labels) -> str:
        names = ", ".join(f"`{label}`" for label in labels.names)
        tuned = "" if labels.thresholds is None else " The threshold above was tuned on the dev rows."
        return f"The softmax of `logits` is the probability of each class: {names}.{tuned}"
