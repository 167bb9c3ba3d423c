"""Losses normalized by the loss of the best constant output."""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor

from weft.weighting.base import Weighting, WeightingOptions


class Normalized(Weighting):
    """`sum_i l_i / b_i`, b_i the loss of the best constant output: the entropy of the classes, the variance of numbers.

    Every normalized loss starts near 1 and decreases towards 0, independent of the loss and the number of classes. The
    b_i are computed from the train labels before the first step; nothing is learned.
    """

    heeds_scale = True
    constants: Tensor

    def __init__(self, tasks: tuple[str, ...]) -> None:
        super().__init__()
        self.places = {task: place for place, task in enumerate(tasks)}
        self.register_buffer("constants", torch.ones(len(tasks), dtype=torch.float64))

    def calibrate(self, constants: Mapping[str, float]) -> None:
        self.constants.copy_(torch.tensor([constants[task] for task in self.places], dtype=torch.float64))

    def forward(self, losses: Tensor, tasks: tuple[str, ...]) -> Tensor:
        return losses / self.constants[[self.places[task] for task in tasks]].to(losses)


class NormalizedConfig(WeightingOptions):
    name: Literal["normalized"] = "normalized"

    def build(self, tasks: tuple[str, ...]) -> Normalized:
        return Normalized(tasks)
