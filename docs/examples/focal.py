"""The focal loss of Lin et al., 2017."""

from typing import Literal

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from weft.kinds.labels import Labels
from weft.losses.base import Loss, LossOptions, refuse
from weft.nn.heads.base import Bounds


class Focal(Loss):
    """`-(1 - p_y)^gamma log p_y`: rows that are right already count less."""

    activation = "softmax"

    def __init__(self, outputs: int, gamma: float) -> None:
        super().__init__(outputs)
        self.gamma = gamma

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        losses = F.cross_entropy(output, target, reduction="none")
        return (1 - (-losses).exp()) ** self.gamma * losses

    def read(self, output: Tensor) -> Tensor:
        return output.softmax(dim=1)


class FocalConfig(LossOptions):
    name: Literal["own-focal"] = "own-focal"
    gamma: float = Field(default=2.0, ge=0)

    def build(self, labels: Labels, task: str, bounds: Bounds) -> Focal:
        if not labels.kind.has_one_class:
            raise refuse(self.name, labels, task, "one class out of several")
        return Focal(len(labels.names), self.gamma)
