"""Weights learnt beside the model."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from weft.weighting.base import Weighting, WeightingOptions


class Uncertainty(Weighting):
    """`sum_i exp(-w_i) l_i + w_i`, each w_i learnt: at rest `exp(w_i) = l_i`, so every task counts alike.

    Kendall, Gal and Cipolla, "Multi-Task Learning Using Uncertainty to Weigh Losses", 2018, without their factors of
    one half. A task that is not in a window leaves its w untouched.
    """

    heeds_scale = True

    def __init__(self, tasks: tuple[str, ...], start: float, lr: float) -> None:
        super().__init__()
        self.w = nn.ParameterDict({task: nn.Parameter(torch.tensor(start)) for task in tasks})
        self.lr = lr

    def forward(self, losses: Tensor, tasks: tuple[str, ...]) -> Tensor:
        w = torch.stack([self.w[task] for task in tasks]).to(losses.dtype)
        return torch.exp(-w) * losses + w


class UncertaintyConfig(WeightingOptions):
    name: Literal["uncertainty"] = "uncertainty"
    start: float = 0.0
    """what every w is at first"""
    lr: float = Field(default=1e-3, gt=0)
    """highest learning rate of the w; at a body's rate they would hardly move in one run"""

    def build(self, tasks: tuple[str, ...]) -> Uncertainty:
        return Uncertainty(tasks, self.start, self.lr)
