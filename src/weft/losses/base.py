"""Base classes of losses, which also define how outputs become predictions."""

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from weft.foundation.components import Component
from weft.foundation.errors import UserError
from weft.foundation.values import Words
from weft.kinds.labels import Labels
from weft.kinds.truth import Targets
from weft.nn.heads.base import Bounds

TINY = 1e-6
"""probabilities are clipped to [TINY, 1 - TINY] before taking a logarithm"""


class Loss(nn.Module, ABC):
    """A loss per row, as a function of outputs and targets only: of the row, or of all rows of a forward pass.

    The loss also defines how outputs become predictions: logits trained with a softmax need a softmax at inference.
    """

    activation: ClassVar[Literal["softmax", "sigmoid", "identity"] | None]
    """the function that `read` applies to logits, for export; None if it is none of these three"""

    reads_vectors: ClassVar[bool] = False
    """whether `output` is [n, texts, width], the unit vectors of each text of a row, instead of [n, outputs]"""
    sees_batch: ClassVar[bool] = False
    """whether a row's loss depends on the other rows of its forward pass"""
    gathers: bool = False
    """whether the rows of all processes form one batch; for losses that see the batch"""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.outputs = outputs
        """number of head outputs per row; not used if the loss reads vectors"""

    def observe(self, targets: Targets) -> None:
        """Called once before training with the targets of the train rows, for losses that need all of them."""

    @abstractmethod
    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        """`output` [n, outputs], `target` [n] -> [n]"""

    @abstractmethod
    def read(self, output: Tensor) -> Tensor:
        """Convert outputs to predictions: [n, classes] probabilities, or [n] numbers for a regression."""

    def by_row(self, output: Tensor, target: Tensor, words: Words, weights: Tensor | None) -> Tensor:
        """Outputs [u, k] and targets [u] of words -> [n] sum of the losses of each row's words.

        `weights` [k] are factors on the loss of a word by its class.
        """
        losses: Tensor = self(output, target)
        return words.total(losses if weights is None else losses * weights[target])

    def read_words(self, output: Tensor, words: Words) -> Tensor:  # noqa: ARG002
        """Convert outputs [u, k] of words to [u, 2]: the number of the predicted class, and its probability."""
        best = self.read(output).max(dim=1)
        return torch.stack([best.indices.to(best.values.dtype), best.values], dim=1)


class LossOptions(Component):
    """Base class of all loss configs."""

    of_texts: ClassVar[bool] = False
    """whether the loss of labels of words is of whole texts and not a mean over words"""

    @abstractmethod
    def build(self, labels: Labels, task: str, bounds: Bounds) -> Loss:
        """Build the loss for the labels of `task` and head outputs within `bounds`.

        Raise UserError `tasks.TASK.loss: ...` if the loss does not support them.
        """


def refuse(name: str, labels: Labels, task: str, expected: str) -> UserError:
    """Return the error for a loss that does not support a task's labels."""
    kind = labels.kind.name
    found = f"{kind} with {len(labels.names)} classes" if labels.names else kind
    return UserError(f"tasks.{task}.loss: {name!r} is for {expected}, but the task is a {found}")


def refuse_bounds(name: str, bounds: Bounds, task: str, expected: str) -> UserError:
    """Return the error for a loss that does not support the range of the head's outputs."""
    found = "numbers without bounds" if bounds is None else f"a number from {bounds[0]:g} to {bounds[1]:g}"
    return UserError(f"tasks.{task}.loss: {name!r} expects {expected}, but the head outputs {found}")
