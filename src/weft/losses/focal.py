"""Focal loss: cross-entropy that gives easy rows less weight."""

from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from weft.foundation.errors import UserError
from weft.kinds.labels import Labels
from weft.losses.base import TINY, Loss, LossOptions, refuse
from weft.losses.pos_weight import BinaryDecisions, PosWeight, given_weights
from weft.nn.heads.base import Bounds


class FocalOfClasses(Loss):
    """`-(1 - p_y)^gamma log p_y` with `p = softmax(o)`.

    Lin et al., "Focal Loss for Dense Object Detection", 2017, with a softmax in place of their sigmoid. Their alpha is
    the task's `class_weights`.
    """

    activation = "softmax"

    def __init__(self, outputs: int, gamma: float) -> None:
        super().__init__(outputs)
        self.gamma = gamma

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        losses = F.cross_entropy(output, target, reduction="none")
        return modulation(losses, self.gamma) * losses

    def read(self, output: Tensor) -> Tensor:
        return output.softmax(dim=1)


class FocalOfLabels(BinaryDecisions):
    """`-a (1 - p_t)^gamma log p_t`, averaged over the labels of a row.

    `p_t` is `p = sigmoid(o)` for a label that applies and `1 - p` for one that does not; `a` is alpha for a label that
    applies and `1 - alpha` for one that does not, or 1 without alpha. Lin et al., 2017.
    """

    activation = "sigmoid"

    def __init__(
        self, outputs: int, gamma: float, alpha: float | None, pos_weight: Tensor | Literal["balanced"] | None
    ) -> None:
        super().__init__(outputs, pos_weight)
        self.gamma = gamma
        self.alpha = alpha

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        answers = target.to(output.dtype)
        plain = F.binary_cross_entropy_with_logits(output, answers, reduction="none")
        losses = modulation(plain, self.gamma) * plain * (1 + answers * (self.positive_weights(output) - 1))
        if self.alpha is not None:
            losses = losses * (self.alpha * answers + (1 - self.alpha) * (1 - answers))
        return losses.mean(dim=1)

    def read(self, output: Tensor) -> Tensor:
        return output.sigmoid()


def modulation(losses: Tensor, gamma: float) -> Tensor:
    """Return `(1 - p)^gamma` for the losses `-log p`."""
    # the lower bound keeps the gradient finite if p is 1 and gamma is below 1
    return (-torch.expm1(-losses)).clamp(min=TINY) ** gamma


class FocalConfig(LossOptions):
    name: Literal["focal"] = "focal"
    gamma: float = Field(default=2.0, ge=0)
    """Focus on hard rows: 0 is cross-entropy, larger values give easy rows less weight."""
    alpha: float | None = Field(default=None, gt=0, lt=1)
    """Multilabel: factor on the loss of a label that applies; one that does not apply has 1 - alpha. Defaults to no
    factors."""
    pos_weight: PosWeight | None = None
    """Multilabel: factor on the loss of labels that apply: a number, a table by label, or "balanced" (rows without the
    label / rows with it, in train). Defaults to 1."""

    def build(self, labels: Labels, task: str, bounds: Bounds) -> Loss:  # noqa: ARG002 (k outputs: no bounds)
        if labels.kind.has_one_class:
            for key in ("alpha", "pos_weight"):
                if getattr(self, key) is not None:
                    raise UserError(f"tasks.{task}.loss.{key}: is for multilabel; classes have `class_weights`")
            return FocalOfClasses(len(labels.names), self.gamma)
        decisions = len(labels.kind.decisions(labels.names))
        if not decisions:
            raise refuse(self.name, labels, task, "classes or multilabel")
        if self.alpha is not None and self.pos_weight is not None:
            raise UserError(f"tasks.{task}.loss.alpha: has the same purpose as pos_weight; leave one of them out")
        return FocalOfLabels(decisions, self.gamma, self.alpha, given_weights(self.pos_weight, labels, task))
