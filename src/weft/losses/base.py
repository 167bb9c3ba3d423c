"""How wrong an output is, row by row, and what the output says."""

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

from torch import Tensor, nn

from weft.foundation.components import Component
from weft.foundation.errors import UserError
from weft.kinds.labels import Labels
from weft.nn.heads.base import Bounds

TINY = 1e-6
"""how close to 0 and 1 a probability may come before its logarithm is taken"""


class Loss(nn.Module, ABC):
    """A function of outputs and targets alone: a loss never owns a model.

    It also fixes how outputs are read, because the two belong together: logits trained by a softmax must be
    read by a softmax.
    """

    activation: ClassVar[Literal["softmax", "sigmoid", "identity"] | None]
    """the common function that `read` is on logits, for libraries that know these three; None if it is none of them"""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.outputs = outputs
        """how many numbers a head must give for each row"""

    @abstractmethod
    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        """`output` [n, outputs], `target` [n] -> [n]"""

    @abstractmethod
    def read(self, output: Tensor) -> Tensor:
        """[n, classes] probabilities, or [n] numbers for a regression"""


class LossOptions(Component):
    """The base of all config classes of losses."""

    @abstractmethod
    def build(self, labels: Labels, task: str, bounds: Bounds) -> Loss:
        """A loss for the labels of `task` on numbers within `bounds`; UserError `tasks.TASK.loss: ...` if none fits."""


def refuse(name: str, labels: Labels, task: str, expected: str) -> UserError:
    """The message for a loss that does not fit a task's labels."""
    kind = labels.kind.name
    found = f"{kind} with {len(labels.names)} classes" if labels.names else kind
    return UserError(f"tasks.{task}.loss: {name!r} is for {expected}, but the task is a {found}")


def refuse_bounds(name: str, bounds: Bounds, task: str, expected: str) -> UserError:
    """The message for a loss that cannot read what the head gives."""
    found = "numbers without bounds" if bounds is None else f"a number from {bounds[0]:g} to {bounds[1]:g}"
    return UserError(f"tasks.{task}.loss: {name!r} reads {expected}, but the head gives {found}")
