"""Squared error."""

from typing import Literal

from torch import Tensor

from weft.data.labels import Labels
from weft.errors import UserError
from weft.losses.base import Loss, refuse
from weft.variants import Config


class MeanSquaredError(Loss):
    """`(o - y)^2`, on labels scaled to 0..1 unless the task says `scale = false`."""

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        return (output[:, 0] - target.to(output.dtype)).square()

    def read(self, output: Tensor) -> Tensor:
        return output[:, 0]


class MeanSquaredErrorConfig(Config):
    name: Literal["mse"] = "mse"

    def build(self, labels: Labels, task: str) -> MeanSquaredError:
        if not labels.is_numeric:
            raise UserError(refuse(self.name, labels, task, "a regression"))
        return MeanSquaredError(1)
