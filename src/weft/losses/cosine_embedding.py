"""Cosine embedding loss: pulls similar texts together and pushes other texts apart."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from weft.foundation.errors import UserError
from weft.kinds.labels import Labels
from weft.losses.base import Loss, LossOptions, refuse, refuse_bounds
from weft.nn.heads.base import Bounds


class CosineEmbedding(Loss):
    """`1 - c` for similar texts, `max(0, c - margin)` for others, with c the cosine similarity.

    A pair is similar if its label is the second of two classes, or a number of at least `cut`. The prediction is
    `max(0, c)`: 0 for unrelated texts, 1 for equal texts.
    """

    activation = None  # the output is a cosine, not a logit

    def __init__(self, cut: float, margin: float, labels: Labels) -> None:
        super().__init__(1)
        self.cut = cut
        self.margin = margin
        self.labels = labels

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        cosine = output[:, 0]
        return torch.where(target >= self.cut, 1 - cosine, (cosine - self.margin).relu())

    def read(self, output: Tensor) -> Tensor:
        closeness = output[:, 0].clamp(0, 1)
        if not self.labels.kind.has_numbers:
            return torch.stack([1 - closeness, closeness], dim=1)
        low, high = (0.0, 1.0) if self.labels.scaled else (self.labels.low, self.labels.high)
        return low + closeness * (high - low)


class CosineEmbeddingConfig(LossOptions):
    name: Literal["cosine-embedding"] = "cosine-embedding"
    cut: float | None = None
    """Smallest label of a similar pair, in the label's units. Defaults to the middle of the range."""
    margin: float = Field(default=0.0, ge=-1, lt=1)
    """A dissimilar pair has no loss if its cosine is below the margin."""

    def build(self, labels: Labels, task: str, bounds: Bounds) -> CosineEmbedding:
        if bounds != (-1.0, 1.0):
            raise refuse_bounds(self.name, bounds, task, 'a cosine (head = "cosine")')
        if labels.kind.has_numbers:
            cut = labels.from_units((labels.low + labels.high) / 2 if self.cut is None else self.cut)
        elif not labels.is_binary:
            raise refuse(self.name, labels, task, "two classes or a regression")
        elif self.cut is not None:
            raise UserError(f"tasks.{task}.loss.cut: is for a regression; with two classes, the second means similar")
        else:
            cut = 1.0
        return CosineEmbedding(cut, self.margin, labels)
