"""The mean of the losses of a window."""

from typing import Literal

from torch import Tensor

from weft.weighting.base import Weighting, WeightingOptions


class MeanWeighting(Weighting):
    """`1/m sum_i l_i` over the m tasks in the window."""

    compares_tasks = True

    def forward(self, losses: Tensor, tasks: tuple[str, ...]) -> Tensor:
        return losses / len(tasks)


class MeanWeightingConfig(WeightingOptions):
    name: Literal["mean"] = "mean"

    def build(self, tasks: tuple[str, ...]) -> MeanWeighting:  # noqa: ARG002 (no state per task)
        return MeanWeighting()
