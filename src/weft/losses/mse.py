"""Squared error."""

from typing import Literal

from torch import Tensor

from weft.kinds.labels import Labels
from weft.losses.base import Loss, LossOptions, refuse, refuse_bounds
from weft.nn.heads.base import Bounds


class MeanSquaredError(Loss):
    """`(o - y)^2`, on labels scaled to 0..1 by default. `scale = false` in the task keeps the label's units."""

    activation = "identity"

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        return (output[:, 0] - target.to(output.dtype)).square()

    def read(self, output: Tensor) -> Tensor:
        return output[:, 0]


class MeanSquaredErrorConfig(LossOptions):
    name: Literal["mse"] = "mse"

    def build(self, labels: Labels, task: str, bounds: Bounds) -> MeanSquaredError:
        if not labels.kind.has_numbers:
            raise refuse(self.name, labels, task, "a regression")
        if bounds is not None and labels.scaled and bounds[1] > 1:
            expected = "a number from 0 to 1, like the scaled labels (scale = false keeps their units)"
            raise refuse_bounds(self.name, bounds, task, expected)
        return MeanSquaredError(1)
