"""L1 and L2 penalties."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from weft.penalties.base import Named, PenaltyOptions, WeightPenalty


class Norm(WeightPenalty):
    """`lambda sum |theta|` or `lambda sum theta^2` over all trainable weights except LayerNorms and biases."""

    def __init__(self, weight: float, power: int) -> None:
        super().__init__()
        self.weight = weight
        self.power = power

    def forward(self, parameters: Named) -> Tensor:
        weights = [p for _, p in parameters if p.ndim > 1]
        sums = [p.abs().sum() if self.power == 1 else p.square().sum() for p in weights]
        return self.weight * torch.stack(sums).sum() if sums else torch.zeros(())


class L1Config(PenaltyOptions):
    """`lambda sum |theta|`: drives weights towards exactly zero."""

    name: Literal["l1"] = "l1"
    weight: float = Field(default=1e-4, gt=0)
    """Weight lambda of the penalty."""

    def build(self) -> Norm:
        return Norm(self.weight, 1)


class L2Config(PenaltyOptions):
    """`lambda sum theta^2`: unlike weight decay, its gradient is scaled by AdamW."""

    name: Literal["l2"] = "l2"
    weight: float = Field(default=1e-3, gt=0)
    """Weight lambda of the penalty."""

    def build(self) -> Norm:
        return Norm(self.weight, 2)
