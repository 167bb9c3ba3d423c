"""One vector for each sequence."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

from weft.types import Encoded


class Pooling(nn.Module, ABC):
    """Hidden states of packed tokens -> one vector for each sequence."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        """size of the vectors it gives"""

    @abstractmethod
    def forward(self, hidden: Tensor, encoded: Encoded) -> Tensor:
        """`hidden` [t, w] of the tokens in `encoded` -> [n, width]"""
