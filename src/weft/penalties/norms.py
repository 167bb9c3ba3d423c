"""The size of the weights."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from weft.penalties.base import Named, PenaltyOptions, WeightPenalty


class Norm(WeightPenalty):
    """`lambda sum |theta|` or `lambda sum theta^2` over all weights that train, LayerNorms and biases left out."""

    def __init__(self, weight: float, power: int) -> None:
        super().__init__()
        self.weight = weight
        self.power = power

    def forward(self, parameters: Named) -> Tensor:
        weights = [p for _, p in parameters if p.ndim > 1]
        sums = [p.abs().sum() if self.power == 1 else p.square().sum() for p in weights]
        return self.weight * torch.stack(sums).sum() if sums else torch.zeros(())


class L1Config(PenaltyOptions):
    """`lambda sum |theta|`: drives weights to exactly zero."""

    name: Literal["l1"] = "l1"
    weight: float = Field(default=1e-4, gt=0)
    """lambda"""

    def build(self) -> Norm:
        return Norm(self.weight, 1)


class L2Config(PenaltyOptions):
    """`lambda sum theta^2`: unlike weight decay it goes through AdamW's scaling."""

    name: Literal["l2"] = "l2"
    weight: float = Field(default=1e-3, gt=0)
    """lambda"""

    def build(self) -> Norm:
        return Norm(self.weight, 2)
