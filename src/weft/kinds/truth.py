"""The input of a metric: true labels and predictions."""

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
Thresholds = NDArray[np.float64]
"""[decisions] probability above which the answer to a binary decision is yes; [n, decisions] one for each row"""


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
    thresholds: Thresholds | None = None
    """decision thresholds of the model that is scored; None: it decides for what is more likely"""

    @staticmethod
    def of(labels: "Labels", targets: Targets, thresholds: Thresholds | None = None) -> "Truth":
        """Convert training targets to the label's units. `thresholds` default to those of the labels."""
        positive = None if labels.positive is None else labels.names.index(labels.positive)
        cuts = np.array(labels.thresholds) if thresholds is None and labels.thresholds is not None else thresholds
        return Truth(labels.kind, labels.in_units(targets), len(labels.names), labels.limits, positive, cuts)

    def __len__(self) -> int:
        return len(self.targets)

    def rows(self, rows: NDArray[np.int64]) -> "Truth":
        """Select rows; a row may be selected more than once."""
        cuts = self.thresholds
        own = cuts[rows] if cuts is not None and cuts.ndim > 1 else cuts
        return replace(self, targets=self.targets[rows], thresholds=own)

    def decide(self, predictions: Predictions) -> Targets:
        """[n] or [n, labels] the decisions that are scored, in the form of targets"""
        return self.kind.decide(predictions, self.thresholds)

    def majority(self) -> Predictions:
        """Return the predictions of the majority-class baseline; for a regression, the mean."""
        return self.kind.majority(self)
