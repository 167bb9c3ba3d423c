"""The input of a metric: true labels and predictions."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from weft.kinds.base import Kind
    from weft.kinds.labels import Labels

Targets = NDArray[np.float64] | NDArray[np.int64]
"""[n] class numbers or numbers, [n, labels] for multilabel; for tags [n] objects, an array of tag numbers per row"""
Predictions = NDArray[np.float64]
"""[n, classes] probabilities, or [n] numbers; for tags [n] objects, an array [words, 4] per row (`kinds/tags.py`)"""


@dataclass(frozen=True)
class Truth:
    """The true labels of rows, and the properties of their task that metrics need."""

    kind: "Kind"
    """the kind of label"""
    targets: Targets
    """[n] class numbers or numbers in the label's units, or [n, labels] for multilabel"""
    classes: int = 0
    """number of classes or labels; 0 for a regression"""
    bounds: tuple[float, float] | None = None
    """range of a regression's labels; None if unknown"""
    positive: int | None = None
    """number of the positive class of precision, recall and `f1-positive`"""
    names: tuple[str, ...] = ()
    """names of the classes"""

    @staticmethod
    def of(labels: "Labels", targets: Targets) -> "Truth":
        """Convert training targets to the label's units."""
        positive = None if labels.positive is None else labels.names.index(labels.positive)
        return Truth(labels.kind, labels.in_units(targets), len(labels.names), labels.limits, positive, labels.names)

    def __len__(self) -> int:
        return len(self.targets)

    def rows(self, rows: NDArray[np.int64]) -> "Truth":
        """Select rows; a row may be selected more than once."""
        return replace(self, targets=self.targets[rows])

    def majority(self) -> Predictions:
        """Return the predictions of the majority-class baseline; for a regression, the mean."""
        return self.kind.majority(self)
