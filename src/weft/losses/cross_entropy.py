"""Softmax cross-entropy."""

from typing import Literal

import torch.nn.functional as F
from torch import Tensor

from weft.data.labels import Labels
from weft.errors import UserError
from weft.losses.base import Loss, refuse
from weft.variants import Config


class CrossEntropy(Loss):
    """`-log softmax(o)_y`."""

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(output, target, reduction="none")

    def read(self, output: Tensor) -> Tensor:
        return output.softmax(dim=1)


class CrossEntropyConfig(Config):
    name: Literal["cross-entropy"] = "cross-entropy"

    def build(self, labels: Labels, task: str) -> CrossEntropy:
        if labels.kind not in ("classification", "ordinal"):
            raise UserError(refuse(self.name, labels, task, "one class out of several"))
        return CrossEntropy(len(labels.names))
