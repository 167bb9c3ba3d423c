"""Logit-adjusted cross-entropy: trains for the mean recall of the classes, however rare they are."""

from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from weft.kinds.labels import Labels
from weft.kinds.truth import Targets
from weft.losses.base import Loss, LossOptions, refuse
from weft.nn.heads.base import Bounds


class LogitAdjusted(Loss):
    """`-log softmax(o + tau log pi)_y` with pi the class frequencies of the train rows.

    Menon et al., "Long-tail learning via logit adjustment", 2021. Predictions are `softmax(o)`, without the shift: with
    tau = 1 they are the probabilities under equally frequent classes, and their argmax minimizes the balanced error.
    A class without train rows counts as one row.
    """

    activation = "softmax"

    def __init__(self, outputs: int, tau: float) -> None:
        super().__init__(outputs)
        self.tau = tau
        self.shift: Tensor
        self.register_buffer("shift", torch.zeros(outputs, dtype=torch.float64), persistent=False)

    def observe(self, targets: Targets) -> None:
        counts = np.maximum(np.bincount(targets.astype(np.int64), minlength=self.outputs), 1)
        self.shift = self.tau * torch.from_numpy(np.log(counts / counts.sum())).to(self.shift)

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(output + self.shift.to(output), target, reduction="none")

    def read(self, output: Tensor) -> Tensor:
        return output.softmax(dim=1)


class LogitAdjustedConfig(LossOptions):
    name: Literal["logit-adjusted"] = "logit-adjusted"
    tau: float = Field(default=1.0, ge=0)
    """Strength: 0 is cross-entropy, 1 treats all classes as equally frequent."""

    def build(self, labels: Labels, task: str, bounds: Bounds) -> LogitAdjusted:  # noqa: ARG002 (k outputs: no bounds)
        if not labels.kind.has_one_class:
            raise refuse(self.name, labels, task, "one class out of several")
        return LogitAdjusted(len(labels.names), self.tau)
