"""What a metric scores: the true labels of some rows, and a model's answers to them."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from weft.data.labels import Kind, Labels, Targets

Predictions = NDArray[np.float64]
"""[n, classes] probabilities, or [n] numbers"""


@dataclass(frozen=True)
class Truth:
    """The labels of some rows, and what a metric must know of their task."""

    kind: Kind
    targets: Targets
    """[n] class numbers or numbers in the label's own units, or [n, labels] for multilabel"""
    classes: int = 0
    """how many classes or labels the task has; 0 for a regression"""
    bounds: tuple[float, float] | None = None
    """the range of a regression's labels; None where it is not known"""
    positive: int | None = None
    """which of two classes precision, recall and `f1-positive` are about"""

    @staticmethod
    def of(labels: Labels, targets: Targets) -> "Truth":
        """Targets as training has them, in the label's own units."""
        if labels.is_numeric:
            numbers = labels.in_units(targets.astype(np.float64))
            return Truth(labels.kind, numbers, bounds=(labels.low, labels.high))
        positive = None if labels.positive is None else labels.names.index(labels.positive)
        return Truth(labels.kind, targets, len(labels.names), positive=positive)

    def __len__(self) -> int:
        return len(self.targets)

    def rows(self, rows: NDArray[np.int64]) -> "Truth":
        """Some rows alone, any of them several times."""
        return replace(self, targets=self.targets[rows])

    def majority(self) -> Predictions:
        """The answers of a model that always gives the majority class (of each label, yes or no), or the mean."""
        if self.kind == "regression":
            return np.full(len(self), self.targets.mean(), dtype=np.float64)
        if self.kind == "multilabel":
            return np.tile((self.targets.mean(axis=0) > 0.5).astype(np.float64), (len(self), 1))
        commonest = np.bincount(self.targets.astype(np.int64), minlength=self.classes).argmax()
        return np.tile(np.eye(self.classes)[commonest], (len(self), 1))


def in_units(labels: Labels, predictions: Predictions) -> Predictions:
    """A model's answers as a `Truth` has its targets: a regression's in the label's own units."""
    return labels.in_units(predictions) if labels.is_numeric else predictions


def decide(predictions: Predictions, targets: Targets) -> NDArray[np.int64]:
    """[n] the likeliest class, or for multilabel [n, labels] which labels are more likely than not."""
    chosen: NDArray[np.int64]
    if targets.ndim == 2:
        chosen = (predictions > 0.5).astype(np.int64)
    else:
        chosen = predictions.argmax(axis=1)
    return chosen


def cells(predictions: Predictions, targets: Targets) -> NDArray[np.int64]:
    """[n] where each row stands in a confusion matrix, flat: true class times classes plus the chosen one."""
    found: NDArray[np.int64] = targets * predictions.shape[1] + decide(predictions, targets)
    return found
