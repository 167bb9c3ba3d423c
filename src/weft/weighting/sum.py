"""The plain sum."""

from typing import Literal

from torch import Tensor

from weft.weighting.base import Weighting, WeightingOptions


class Sum(Weighting):
    """`sum_i l_i`: a task with larger losses gets a larger say."""

    def forward(self, losses: Tensor, tasks: tuple[str, ...]) -> Tensor:  # noqa: ARG002 (every task alike)
        return losses


class SumConfig(WeightingOptions):
    name: Literal["sum"] = "sum"

    def build(self, tasks: tuple[str, ...]) -> Sum:  # noqa: ARG002 (no state for any task)
        return Sum()
