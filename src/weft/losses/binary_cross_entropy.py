"""Cross-entropy of yes-or-no questions."""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from weft.foundation.errors import UserError
from weft.kinds.labels import Labels
from weft.losses.base import TINY, Loss, LossOptions, refuse, refuse_bounds
from weft.nn.heads.base import Bounds


class BinaryCrossEntropy(Loss):
    """`-log p` where the answer is yes, `-log (1 - p)` where it is no, the mean over all questions.

    `p = sigmoid(o)`, or o itself for a head that gives a number from 0 to 1. Two classes are one question, the second
    class meaning yes. A multilabel task has one question per label.
    """

    activation = "sigmoid"

    def __init__(self, outputs: int, reads_probabilities: bool) -> None:
        super().__init__(outputs)
        self.reads_probabilities = reads_probabilities

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        answers = target.to(output.dtype).view_as(output)
        if self.reads_probabilities:
            # written out: torch's own refuses to run under autocast
            p = output.clamp(TINY, 1 - TINY)
            return -(answers * p.log() + (1 - answers) * (1 - p).log()).mean(dim=1)
        return F.binary_cross_entropy_with_logits(output, answers, reduction="none").mean(dim=1)

    def read(self, output: Tensor) -> Tensor:
        yes = output if self.reads_probabilities else output.sigmoid()
        return torch.cat([1 - yes, yes], dim=1) if self.outputs == 1 else yes


class BinaryCrossEntropyConfig(LossOptions):
    name: Literal["binary-cross-entropy"] = "binary-cross-entropy"
    as_logit: bool = False
    """Read a number from 0 to 1 as a logit, not as a probability, as report 3's code does. Defaults to false."""

    def build(self, labels: Labels, task: str, bounds: Bounds) -> BinaryCrossEntropy:
        if bounds not in (None, (0.0, 1.0)):
            raise refuse_bounds(self.name, bounds, task, "a logit, or a probability from 0 to 1")
        if self.as_logit and bounds is None:
            raise UserError(f"tasks.{task}.loss.as_logit: the head gives a logit already; leave as_logit out")
        reads_probabilities = bounds is not None and not self.as_logit
        questions = labels.kind.questions(labels)
        if questions is None:
            raise refuse(self.name, labels, task, "two classes, or for several labels at once")
        return BinaryCrossEntropy(questions, reads_probabilities)
