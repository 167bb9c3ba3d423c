"""Dual objective: one binary cross-entropy per class."""

from typing import Literal

import torch.nn.functional as F
from torch import Tensor

from weft.kinds.labels import Labels
from weft.losses.base import TINY, Loss, LossOptions, refuse
from weft.nn.heads.base import Bounds


class DualObjective(Loss):
    """`-sum_i [i = y] log s_i + [i != y] log (1 - s_i)` with `s_i = sigmoid(o_i)`, summed or averaged over classes.

    Raises the true class and lowers every other class independently. Predictions are `s_i / sum s`.
    """

    activation = None  # s_i / sum s is none of the three

    def __init__(self, outputs: int, reduction: str) -> None:
        super().__init__(outputs)
        self.reduction = reduction

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        answers = F.one_hot(target, self.outputs).to(output.dtype)
        losses = F.binary_cross_entropy_with_logits(output, answers, reduction="none")
        return losses.sum(dim=1) if self.reduction == "sum" else losses.mean(dim=1)

    def read(self, output: Tensor) -> Tensor:
        shares = output.sigmoid().clamp(min=TINY)
        return shares / shares.sum(dim=1, keepdim=True)


class DualObjectiveConfig(LossOptions):
    name: Literal["dual-objective"] = "dual-objective"
    reduction: Literal["sum", "mean"] = "sum"
    """Reduction over classes. The formula in the report sums, its text averages."""

    def build(self, labels: Labels, task: str, bounds: Bounds) -> DualObjective:  # noqa: ARG002 (k outputs: no bounds)
        if not labels.kind.has_one_class:
            raise refuse(self.name, labels, task, "one class out of several")
        return DualObjective(len(labels.names), self.reduction)
