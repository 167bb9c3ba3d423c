"""Base classes of heads, which map pooled vectors to the inputs of a loss."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor, nn

from weft.foundation.components import Component
from weft.foundation.errors import UserError

Bounds = tuple[float, float] | None
"""range of a head's outputs; None for logits and other unbounded numbers"""


@dataclass(frozen=True)
class HeadShape:
    """The input and output sizes of a head."""

    width: int
    """size of each pooled vector"""
    pair: bool
    """whether the input is two vectors (a bi reading) or one"""
    outputs: int
    """outputs per row"""
    task: str
    """name of the task, for error messages"""
    shared: dict[str, nn.Module] = field(default_factory=dict)
    """modules that heads of one network share, by name"""

    def require_pair(self, name: str) -> None:
        """Raise UserError if head `name` gets one vector."""
        if not self.pair:
            raise UserError(f'tasks.{self.task}.head: {name!r} compares two vectors; it needs reading = "bi"')

    def require_one_output(self, name: str) -> None:
        """Raise UserError if the loss needs more than the single output of head `name`."""
        if self.outputs != 1:
            raise UserError(
                f"tasks.{self.task}.head: {name!r} has one output, but the task's loss needs {self.outputs}; "
                "use it for a regression, or for two classes with a loss on one output, or choose another head"
            )


class Head(nn.Module, ABC):
    """`first` [n, width] and, for a bi reading, `second` [n, width] -> [n, outputs]

    A head whose config has `gives_vectors` also gets the vectors of hard negatives and returns [n, texts, width].
    """

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.outputs = outputs

    @abstractmethod
    def forward(self, first: Tensor, second: Tensor | None) -> Tensor:
        """[n, outputs]: logits for classes, numbers for a regression"""


class HeadOptions(Component):
    """Base class of all head configs."""

    bounds: ClassVar[Bounds] = None
    """range of the head's outputs"""
    gives_vectors: ClassVar[bool] = False
    """whether the output is a vector for each text of a row, for losses that read vectors"""

    @abstractmethod
    def build(self, shape: HeadShape) -> Head:
        """Build the head. Raise UserError `tasks.TASK.head: ...` if it does not support the shape."""


def joined(first: Tensor, second: Tensor | None) -> Tensor:
    """`u`, or `(u, v)` for a pair"""
    return first if second is None else torch.cat([first, second], dim=1)


def plain_linear(inputs: int, outputs: int) -> nn.Linear:
    """Create a linear layer with BERT's initialization."""
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=0.02)
    nn.init.zeros_(layer.bias)
    return layer
