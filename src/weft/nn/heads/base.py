"""From pooled vectors to what a loss reads."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor, nn

from weft.foundation.components import Component
from weft.foundation.errors import UserError

Bounds = tuple[float, float] | None
"""the range of a head's numbers; None for logits and other numbers without bounds"""


@dataclass(frozen=True)
class HeadShape:
    """What a head is built for."""

    width: int
    """size of each pooled vector"""
    pair: bool
    """whether it gets two vectors (a bi reading) or one"""
    outputs: int
    """numbers it must give for each row"""
    task: str
    """for messages"""
    shared: dict[str, nn.Module] = field(default_factory=dict)
    """modules that heads of one network share, by name"""

    def require_pair(self, name: str) -> None:
        if not self.pair:
            raise UserError(f'tasks.{self.task}.head: {name!r} compares two vectors; it needs reading = "bi"')

    def require_one_output(self, name: str) -> None:
        if self.outputs != 1:
            raise UserError(
                f"tasks.{self.task}.head: {name!r} gives one number, but the task's loss needs {self.outputs}; "
                "use it for a regression or for two classes with a loss on one number, or choose another head"
            )


class Head(nn.Module, ABC):
    """`first` [n, width] and, for a bi reading, `second` [n, width] -> [n, outputs]"""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.outputs = outputs

    @abstractmethod
    def forward(self, first: Tensor, second: Tensor | None) -> Tensor:
        """[n, outputs]: logits for classes, numbers for a regression"""


class HeadOptions(Component):
    """The base of all config classes of heads."""

    bounds: ClassVar[Bounds] = None
    """the range of the numbers that the head gives"""

    @abstractmethod
    def build(self, shape: HeadShape) -> Head:
        """A head of that shape; UserError `tasks.TASK.head: ...` if it cannot have it."""


def joined(first: Tensor, second: Tensor | None) -> Tensor:
    """`u`, or `(u, v)` for a pair"""
    return first if second is None else torch.cat([first, second], dim=1)


def plain_linear(inputs: int, outputs: int) -> nn.Linear:
    """A linear layer that starts as BERT's own do."""
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=0.02)
    nn.init.zeros_(layer.bias)
    return layer
