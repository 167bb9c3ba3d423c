"""What a metric scores: the true labels of some rows, and a model's answers to them."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from weft.kinds.base import Kind
    from weft.kinds.labels import Labels

Targets = NDArray[np.float64] | NDArray[np.int64]
Predictions = NDArray[np.float64]
"""[n, classes] probabilities, or [n] numbers"""


@dataclass(frozen=True)
class Truth:
    """The labels of some rows, and what a metric must know of their task."""

    kind: "Kind"
    targets: Targets
    """[n] class numbers or numbers in the label's own units, or [n, labels] for multilabel"""
    classes: int = 0
    """how many classes or labels the task has; 0 for a regression"""
    bounds: tuple[float, float] | None = None
    """the range of a regression's labels; None where it is not known"""
    positive: int | None = None
    """which of two classes precision, recall and `f1-positive` are about"""

    @staticmethod
    def of(labels: "Labels", targets: Targets) -> "Truth":
        """Targets as training has them, in the label's own units."""
        positive = None if labels.positive is None else labels.names.index(labels.positive)
        return Truth(labels.kind, labels.in_units(targets), len(labels.names), labels.limits, positive)

    def __len__(self) -> int:
        return len(self.targets)

    def rows(self, rows: NDArray[np.int64]) -> "Truth":
        """Some rows alone, any of them several times."""
        return replace(self, targets=self.targets[rows])

    def majority(self) -> Predictions:
        """The answers of a model that always gives the majority class (of each label, yes or no), or the mean."""
        return self.kind.majority(self)
