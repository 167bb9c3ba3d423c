"""Random weights, drawn in every step."""

from typing import Literal

import torch
from torch import Tensor

from weft.weighting.base import Weighting, WeightingOptions


class Random(Weighting):
    """`m softmax(z)` with z standard normal, drawn for each window: a strong baseline.

    Lin, Ye, Zhang and Tsang, "Reasonable Effectiveness of Random Weighting", 2022. Multiplied by m here, so that the
    mean weight is 1.
    """

    compares_tasks = True

    def __init__(self) -> None:
        super().__init__()
        self.seed = 0

    def prepare(self, seed: int) -> None:
        self.seed = seed

    def forward(self, losses: Tensor, tasks: tuple[str, ...]) -> Tensor:
        z = torch.randn(len(tasks), generator=torch.Generator().manual_seed(self.seed), dtype=torch.float64)
        return losses * (len(tasks) * z.softmax(dim=0)).to(losses)


class RandomConfig(WeightingOptions):
    name: Literal["random"] = "random"

    def build(self, tasks: tuple[str, ...]) -> Random:  # noqa: ARG002 (no state per task)
        return Random()
