"""Sigmoid cross-entropy on one logit."""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from weft.data.labels import Labels
from weft.errors import UserError
from weft.losses.base import Loss, refuse
from weft.variants import Config


class BinaryCrossEntropy(Loss):
    """`-log sigmoid(o)` for the second of two classes, `-log sigmoid(-o)` for the first."""

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(output[:, 0], target.to(output.dtype), reduction="none")

    def read(self, output: Tensor) -> Tensor:
        second = output[:, 0].sigmoid()
        return torch.stack([1 - second, second], dim=1)


class BinaryCrossEntropyConfig(Config):
    name: Literal["binary-cross-entropy"] = "binary-cross-entropy"

    def build(self, labels: Labels, task: str) -> BinaryCrossEntropy:
        if labels.kind not in ("classification", "ordinal") or len(labels.names) != 2:
            raise UserError(refuse(self.name, labels, task, "two classes"))
        return BinaryCrossEntropy(1)
