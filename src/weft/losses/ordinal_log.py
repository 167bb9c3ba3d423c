"""Ordinal log loss: errors cost more the further they are from the true class."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from weft.kinds.labels import Labels
from weft.losses.base import TINY, Loss, LossOptions, refuse
from weft.nn.heads.base import Bounds


class OrdinalLog(Loss):
    """`-sum_i log(1 - p_i) d(y, i)^alpha` with `p = softmax(o)` and `d` the difference of class numbers.

    Castagnos, Mihelich and Dognin, "A Simple Log-based Loss Function for Ordinal Text Classification", 2022.
    """

    activation = "softmax"

    def __init__(self, outputs: int, alpha: float) -> None:
        super().__init__(outputs)
        self.alpha = alpha

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        wrong = (1 - output.softmax(dim=1)).clamp(min=TINY)
        classes = torch.arange(self.outputs, device=output.device)
        distance = (classes[None] - target[:, None]).abs().to(output.dtype) ** self.alpha
        distance = torch.where(classes[None] == target[:, None], 0.0, distance)  # 0 ** 0 would be 1
        return -(wrong.log() * distance).sum(dim=1)

    def read(self, output: Tensor) -> Tensor:
        return output.softmax(dim=1)


class OrdinalLogConfig(LossOptions):
    name: Literal["ordinal-log"] = "ordinal-log"
    alpha: float = Field(default=1.5, ge=0)
    """Exponent of the distance between classes."""

    def build(self, labels: Labels, task: str, bounds: Bounds) -> OrdinalLog:  # noqa: ARG002 (k outputs: no bounds)
        if not labels.kind.has_one_class:
            raise refuse(self.name, labels, task, "one class out of several, in order")
        return OrdinalLog(len(labels.names), self.alpha)
