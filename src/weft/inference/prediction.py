"""Prediction for one row."""

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, repr=False)
class Prediction:
    """Prediction of one task for one row."""

    task: str
    label: str | list[str] | list[dict[str, Any]] | None
    """most likely class; all labels more likely than not (multilabel); spans with start, end, label and score (tags);
    None for regression or no prediction. Tuned thresholds decide instead if the model has them."""
    score: float
    """probability of the predicted class, largest probability (multilabel), predicted number (in the label's units) or
    mean probability of the predicted tags; NaN if there is no prediction"""
    probabilities: dict[str, float] | None
    """probability of every label; None for regression and tags"""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON. A row without a prediction has the score None (null)."""
        score = None if math.isnan(self.score) else self.score
        content = vars(self) | {"score": score}
        if self.probabilities is None:
            del content["probabilities"]
            if self.label is None:
                del content["label"]
        return content

    def __repr__(self) -> str:
        """Return for example `Prediction(stars: '5', 0.93)`; for regression, only the number."""
        if math.isnan(self.score):
            return f"Prediction({self.task}: no answer)"
        label = "" if self.label is None else f"{self.label!r}, "
        return f"Prediction({self.task}: {label}{self.score:.3g})"
