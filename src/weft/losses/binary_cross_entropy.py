"""Binary cross-entropy."""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from weft.foundation.errors import UserError
from weft.kinds.labels import Labels
from weft.losses.base import TINY, LossOptions, refuse, refuse_bounds
from weft.losses.pos_weight import BinaryDecisions, PosWeight, given_weights
from weft.nn.heads.base import Bounds


class BinaryCrossEntropy(BinaryDecisions):
    """`-w y log p - (1 - y) log (1 - p)` with `p = sigmoid(o)` and w = `pos_weight`, averaged over the labels of a row.

    For a head with outputs from 0 to 1, p is the output. With two classes, p is the probability of the second class.
    """

    activation = "sigmoid"

    def __init__(
        self,
        outputs: int,
        reads_probabilities: bool,
        pos_weight: Tensor | Literal["balanced"] | None = None,
    ) -> None:
        super().__init__(outputs, pos_weight)
        self.reads_probabilities = reads_probabilities

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        answers = target.to(output.dtype).view_as(output)
        if self.reads_probabilities:
            # F.binary_cross_entropy raises an error under autocast
            p = output.clamp(TINY, 1 - TINY)
            positive = answers if self.pos_weight is None else answers * self.positive_weights(output)
            return -(positive * p.log() + (1 - answers) * (1 - p).log()).mean(dim=1)
        weight = None if self.pos_weight is None else self.positive_weights(output)
        losses = F.binary_cross_entropy_with_logits(output, answers, reduction="none", pos_weight=weight)
        return losses.mean(dim=1)

    def read(self, output: Tensor) -> Tensor:
        yes = output if self.reads_probabilities else output.sigmoid()
        return torch.cat([1 - yes, yes], dim=1) if self.outputs == 1 else yes


class BinaryCrossEntropyConfig(LossOptions):
    name: Literal["binary-cross-entropy"] = "binary-cross-entropy"
    as_logit: bool = False
    """Interpret a head output from 0 to 1 as a logit, not as a probability, like the code of report 3."""
    pos_weight: PosWeight | None = None
    """Factor on the loss of labels that apply (of two classes: of the second one): a number, a table by label, or
    "balanced" (rows without the label / rows with it, in train). Defaults to 1."""

    def build(self, labels: Labels, task: str, bounds: Bounds) -> BinaryCrossEntropy:
        if bounds not in (None, (0.0, 1.0)):
            raise refuse_bounds(self.name, bounds, task, "a logit, or a probability from 0 to 1")
        if self.as_logit and bounds is None:
            raise UserError(f"tasks.{task}.loss.as_logit: the head outputs a logit already; leave as_logit out")
        reads_probabilities = bounds is not None and not self.as_logit
        decisions = len(labels.kind.decisions(labels.names))
        if not decisions:
            raise refuse(self.name, labels, task, "two classes or multilabel")
        return BinaryCrossEntropy(decisions, reads_probabilities, given_weights(self.pos_weight, labels, task))
