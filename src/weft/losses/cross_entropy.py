"""Softmax cross-entropy."""

from typing import Literal

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from weft.kinds.labels import Labels
from weft.losses.base import Loss, LossOptions, refuse
from weft.nn.heads.base import Bounds


class CrossEntropy(Loss):
    """`-log softmax(o)_y`. With label smoothing s, the target is `(1 - s) onehot(y) + s / classes`."""

    activation = "softmax"

    def __init__(self, outputs: int, smoothing: float) -> None:
        super().__init__(outputs)
        self.smoothing = smoothing

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(output, target, reduction="none", label_smoothing=self.smoothing)

    def read(self, output: Tensor) -> Tensor:
        return output.softmax(dim=1)


class CrossEntropyConfig(LossOptions):
    name: Literal["cross-entropy"] = "cross-entropy"
    smoothing: float = Field(default=0.0, ge=0, lt=1)
    """Label smoothing."""

    def build(self, labels: Labels, task: str, bounds: Bounds) -> CrossEntropy:  # noqa: ARG002 (k outputs: no bounds)
        if not labels.kind.has_one_class:
            raise refuse(self.name, labels, task, "one class out of several")
        return CrossEntropy(len(labels.names), self.smoothing)
