"""Sigmoid cross-entropy, one yes-or-no question per logit."""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from weft.data.labels import Labels
from weft.errors import UserError
from weft.losses.base import Loss, refuse
from weft.variants import Config


class BinaryCrossEntropy(Loss):
    """`-log sigmoid(o)` where the answer is yes, `-log sigmoid(-o)` where it is no, the mean over all questions.

    Two classes are one question, the second class meaning yes. A multilabel task has one question per label.
    """

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        answers = target.to(output.dtype).view_as(output)
        return F.binary_cross_entropy_with_logits(output, answers, reduction="none").mean(dim=1)

    def read(self, output: Tensor) -> Tensor:
        yes = output.sigmoid()
        return torch.cat([1 - yes, yes], dim=1) if self.outputs == 1 else yes


class BinaryCrossEntropyConfig(Config):
    name: Literal["binary-cross-entropy"] = "binary-cross-entropy"

    def build(self, labels: Labels, task: str) -> BinaryCrossEntropy:
        if labels.kind == "multilabel":
            return BinaryCrossEntropy(len(labels.names))
        if labels.is_numeric or len(labels.names) != 2:
            raise UserError(refuse(self.name, labels, task, "two classes, or for several labels at once"))
        return BinaryCrossEntropy(1)
