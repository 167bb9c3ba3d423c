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
"""[n, classes] probabilities, [n] numbers, or [n, 3] similarities and ranks of matches; for tags [n] objects, an array
[words, 4] per row (`kinds/tags.py`)"""
Thresholds = NDArray[np.float64]
"""[decisions] probability above which the answer to a binary decision is yes; [n, decisions] one for each row"""


@dataclass(frozen=True)
class Truth:
    """The true labels of rows, and the properties of their task that metrics need."""

    kind: "Kind"
    """the kind of label"""
    targets: Targets
    """[n] class numbers or numbers in the label's units, [n, labels] for multilabel, or [n, texts] for matches"""
    classes: int = 0
    """number of classes or labels; 0 for a regression"""
    bounds: tuple[float, float] | None = None
    """range of a regression's labels; None if unknown"""
    positive: int | None = None
    """number of the positive class of precision, recall and `f1-positive`"""
    thresholds: Thresholds | None = None
    """decision thresholds of the model that is scored; None: it decides for what is more likely"""
    names: tuple[str, ...] = ()
    """names of the classes"""

    @staticmethod
    def of(labels: "Labels", targets: Targets, thresholds: Thresholds | None = None) -> "Truth":
        """Convert training targets to the label's units. `thresholds` default to those of the labels."""
        positive = None if labels.positive is None else labels.names.index(labels.positive)
        cuts = np.array(labels.thresholds) if thresholds is None and labels.thresholds is not None else thresholds
        targets, names = labels.in_units(targets), labels.names
        return Truth(labels.kind, targets, len(names), labels.limits, positive, cuts, names)

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
