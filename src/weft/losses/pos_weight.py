"""The factor on the loss of positive labels, for losses on binary decisions."""

from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from weft.foundation.errors import UserError
from weft.kinds.labels import Labels
from weft.kinds.truth import Targets
from weft.losses.base import Loss

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
PosWeight = Literal["balanced"] | Positive | dict[str, Positive]
"""in a recipe: one factor, one for each named label (1 for the others), or "balanced" """


class BinaryDecisions(Loss):
    """Base class of losses on one binary decision per output, with a factor on the loss of positive decisions."""

    def __init__(self, outputs: int, pos_weight: Tensor | Literal["balanced"] | None) -> None:
        """`pos_weight` [outputs]; "balanced" is negative / positive train rows of each label, known after `observe`."""
        super().__init__(outputs)
        self.is_balanced = isinstance(pos_weight, str)
        self.pos_weight: Tensor | None
        self.register_buffer(
            "pos_weight", torch.ones(outputs) if isinstance(pos_weight, str) else pos_weight, persistent=False
        )

    def observe(self, targets: Targets) -> None:
        if self.is_balanced and self.pos_weight is not None:
            positive = (targets.reshape(len(targets), -1) > 0.5).sum(axis=0).astype(np.float64)
            negative = len(targets) - positive
            # no factor for a label that all rows have, or none
            ratio = np.divide(negative, positive, out=np.ones_like(positive), where=(positive > 0) & (negative > 0))
            self.pos_weight = torch.from_numpy(ratio).to(self.pos_weight)

    def positive_weights(self, output: Tensor) -> Tensor:
        """[outputs] the factors, in the type and on the device of the outputs"""
        return output.new_ones(self.outputs) if self.pos_weight is None else self.pos_weight.to(output)


def given_weights(wanted: PosWeight | None, labels: Labels, task: str) -> Tensor | Literal["balanced"] | None:
    """Return a recipe's `pos_weight` as one factor for each binary decision of the labels."""
    if wanted is None or wanted == "balanced":
        return wanted
    names = labels.kind.decisions(labels.names)
    if isinstance(wanted, float):
        return torch.full((len(names),), wanted, dtype=torch.float64)
    for name in wanted:
        if name not in names:
            expected = " or ".join(names) if len(names) < 3 else f"some of {', '.join(names)}"
            raise UserError(f"tasks.{task}.loss.pos_weight: found the label {name!r}, expected {expected}")
    return torch.tensor([wanted.get(name, 1.0) for name in names], dtype=torch.float64)
