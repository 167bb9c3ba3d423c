"""Dynamic weight average: larger weights for tasks whose losses decrease slowly."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from weft.weighting.base import Weighting, WeightingOptions


class DynamicWeightAverage(Weighting):
    """`w_i = m softmax(r_i / T)` with `r_i = L_i(t - 1) / L_i(t - 2)`, L the mean loss of an interval of steps.

    Liu, Johns and Davison, "End-to-End Multi-Task Learning with Attention", 2019. Their interval is an epoch; here it
    is a number of steps, because epochs differ between schedules. Weights are 1 until two intervals have passed.
    """

    means: Tensor
    sums: Tensor
    counts: Tensor
    seen: Tensor

    def __init__(self, tasks: tuple[str, ...], temperature: float, every: int) -> None:
        super().__init__()
        self.places = {task: place for place, task in enumerate(tasks)}
        self.temperature = temperature
        self.every = every
        self.idle_steps = 2 * every
        self.register_buffer("means", torch.full((2, len(tasks)), float("nan"), dtype=torch.float64))
        self.register_buffer("sums", torch.zeros(len(tasks), dtype=torch.float64))
        self.register_buffer("counts", torch.zeros(len(tasks), dtype=torch.float64))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def forward(self, losses: Tensor, tasks: tuple[str, ...]) -> Tensor:
        ratios = self.means[1] / self.means[0]
        known = torch.isfinite(ratios)
        weights = torch.ones_like(ratios)
        weights[known] = known.sum() * torch.softmax(ratios[known] / self.temperature, dim=0)
        places = [self.places[task] for task in tasks]
        return losses * weights[places].to(losses.dtype)

    @torch.no_grad()
    def observe(self, losses: Tensor, tasks: tuple[str, ...]) -> None:
        places = [self.places[task] for task in tasks]
        self.sums[places] += losses.double()
        self.counts[places] += 1
        self.seen += 1
        if int(self.seen) % self.every == 0:
            # a task without batches in the interval keeps its last mean
            latest = torch.where(self.counts > 0, self.sums / self.counts, self.means[1])
            self.means.copy_(torch.stack([self.means[1], latest]))
            self.sums.zero_()
            self.counts.zero_()


class DynamicWeightAverageConfig(WeightingOptions):
    name: Literal["dwa"] = "dwa"
    temperature: float = Field(default=2.0, gt=0)
    """Temperature T. Higher values give more uniform weights."""
    every: int = Field(default=100, ge=1)
    """Steps per interval."""

    def build(self, tasks: tuple[str, ...]) -> DynamicWeightAverage:
        return DynamicWeightAverage(tasks, self.temperature, self.every)
