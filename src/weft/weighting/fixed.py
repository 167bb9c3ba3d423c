"""Fixed weights."""

from typing import Literal

from torch import Tensor

from weft.foundation.errors import UserError
from weft.weighting.base import Weighting, WeightingOptions


class Fixed(Weighting):
    """`sum_i w_i l_i`."""

    heeds_scale = True

    def __init__(self, weights: dict[str, float]) -> None:
        super().__init__()
        self.weights = weights

    def forward(self, losses: Tensor, tasks: tuple[str, ...]) -> Tensor:
        return losses * losses.new_tensor([self.weights[task] for task in tasks])


class FixedConfig(WeightingOptions):
    name: Literal["fixed"] = "fixed"
    weights: dict[str, float]
    """One weight per task: `{ sentiment = 0.1, paraphrase = 1.0, similarity = 0.2 }`."""

    def build(self, tasks: tuple[str, ...]) -> Fixed:
        if set(self.weights) != set(tasks):
            raise UserError(
                f"weighting.weights: found {', '.join(self.weights)}, expected one for each of {', '.join(tasks)}"
            )
        if min(self.weights.values()) < 0 or max(self.weights.values()) == 0:
            raise UserError("weighting.weights: expected weights of at least 0, and at least one above 0")
        return Fixed(self.weights)
