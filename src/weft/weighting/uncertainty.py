"""Uncertainty weighting: weights learned together with the model."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from weft.weighting.base import Weighting, WeightingOptions


class Uncertainty(Weighting):
    """`sum_i exp(-w_i) l_i + w_i` with learned w_i: at the optimum `exp(w_i) = l_i`, so all tasks count equally.

    Kendall, Gal and Cipolla, "Multi-Task Learning Using Uncertainty to Weigh Losses", 2018, without their factors of
    one half. A window does not update the w_i of tasks that are not in it.
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
    """Initial value of every w_i."""
    lr: float = Field(default=1e-3, gt=0)
    """Peak learning rate of the w_i. With the learning rate of a body they would hardly change in one run."""

    def build(self, tasks: tuple[str, ...]) -> Uncertainty:
        return Uncertainty(tasks, self.start, self.lr)
