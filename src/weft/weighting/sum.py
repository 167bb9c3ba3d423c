"""The sum of the losses."""

from typing import Literal

from torch import Tensor

from weft.weighting.base import Weighting, WeightingOptions


class Sum(Weighting):
    """`sum_i l_i`: tasks with larger losses have more influence."""

    def forward(self, losses: Tensor, tasks: tuple[str, ...]) -> Tensor:  # noqa: ARG002 (all tasks alike)
        return losses


class SumConfig(WeightingOptions):
    name: Literal["sum"] = "sum"

    def build(self, tasks: tuple[str, ...]) -> Sum:  # noqa: ARG002 (no state per task)
        return Sum()
