"""What losses on the order of graded pairs share."""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from weft.kinds.labels import Labels
from weft.losses.base import Loss, LossOptions, refuse, refuse_bounds
from weft.nn.heads.base import Bounds


class GradedPairs(Loss):
    """`log(1 + sum exp(s (c_j - c_i)))` over the pairs of rows with label y_i > y_j, where c is a row's similarity.

    It is one number for a forward pass. Every row gets it as its loss, so the mean over rows is that number. The
    prediction is `max(0, cos)`, scaled to the range of the labels.
    """

    activation = None  # the prediction is a cosine
    sees_batch: ClassVar[bool] = True

    def __init__(self, scale: float, labels: Labels, *, gather: bool) -> None:
        super().__init__(1)
        self.scale = scale
        self.labels = labels
        self.gathers = gather

    def in_order(self, similarity: Tensor, target: Tensor) -> Tensor:
        """[n] the loss of the whole batch, once for each row."""
        gaps = self.scale * (similarity[None, :] - similarity[:, None])
        wrong = gaps.masked_fill(target[:, None] <= target[None, :], -torch.inf).flatten()
        zero = similarity.new_zeros(1)
        return torch.cat([zero, wrong]).logsumexp(dim=0).expand(len(similarity))

    def in_range(self, cosine: Tensor) -> Tensor:
        """Scale cosines to the range of the labels."""
        low, high = (0.0, 1.0) if self.labels.scaled else (self.labels.low, self.labels.high)
        return low + cosine.clamp(0, 1) * (high - low)


class GradedOptions(LossOptions):
    """Base class of the configs of these losses."""

    scale: float = Field(default=20.0, gt=0)
    """Factor on the similarities."""
    gather: bool = False
    """Whether the rows of all processes form one batch. Defaults to pairs of rows of the same process only."""


def require_graded(name: str, labels: Labels, task: str, bounds: Bounds, expected: str) -> None:
    """Raise UserError unless labels are numbers and the head outputs cosines or unit vectors."""
    if not labels.kind.has_numbers:
        raise refuse(name, labels, task, "a regression")
    if bounds != (-1.0, 1.0):
        raise refuse_bounds(name, bounds, task, expected)
