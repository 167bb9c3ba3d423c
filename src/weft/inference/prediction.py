"""The answer for one row."""

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, repr=False)
class Prediction:
    """The answer for one row."""

    task: str
    label: str | list[str] | None
    """the likeliest class; all labels that are more likely than not (multilabel); None for a regression or no answer"""
    score: float
    """the largest probability, or the predicted number in the label's own units; NaN where there is no answer"""
    probabilities: dict[str, float] | None
    """of every label; None for a regression"""

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON, where a row without an answer has null."""
        score = None if math.isnan(self.score) else self.score
        if self.probabilities is None:
            return {"task": self.task, "score": score}
        return vars(self) | {"score": score}

    def __repr__(self) -> str:
        """`Prediction(stars: '5', 0.93)`; of a regression the number alone."""
        if math.isnan(self.score):
            return f"Prediction({self.task}: no answer)"
        label = "" if self.probabilities is None else f"{self.label!r}, "
        return f"Prediction({self.task}: {label}{self.score:.3g})"
