"""From pooled vectors to what a loss reads."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor, nn


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


class Head(nn.Module, ABC):
    """`first` [n, width] and, for a bi reading, `second` [n, width] -> [n, outputs]"""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.outputs = outputs

    @abstractmethod
    def forward(self, first: Tensor, second: Tensor | None) -> Tensor:
        """[n, outputs]: logits for classes, numbers for a regression"""
