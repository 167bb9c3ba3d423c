"""Base classes of poolings, which reduce a sequence to one vector, or keep the states of its tokens."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from torch import Tensor, nn

from weft.bodies.body import Body
from weft.foundation.components import Component
from weft.foundation.values import Encoded


class Pooling(nn.Module, ABC):
    """Hidden states of packed tokens -> one vector per sequence. Padded states give the same vectors."""

    first_only = False
    """whether it uses only the first token of each sequence"""
    keeps_tokens = False
    """whether it returns the states of all tokens [t, width], of which the task selects those of words"""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        """size of the pooled vectors"""

    @abstractmethod
    def forward(self, hidden: Tensor, encoded: Encoded) -> Tensor:
        """`hidden` [t, w] of the tokens in `encoded` -> [n, width]"""

    @abstractmethod
    def padded(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """The same for padded `hidden` [n, l, w], for export; `mask` [n, l] is 1 for real tokens"""


class PoolingOptions(Component):
    """Base class of all pooling configs."""

    keeps_tokens: ClassVar[bool] = False
    """whether the pooling returns the states of all tokens"""

    @abstractmethod
    def build(self, body: Body) -> Pooling:
        """Build the pooling for the hidden states of a body."""


def by_run(hidden: Tensor, encoded: Encoded) -> Iterator[Tensor]:
    """Yield [n, l, w] for each run of sequences of equal length, without padding."""
    sizes = [n * length for n, length in encoded.runs]
    for (n, length), run in zip(encoded.runs, hidden.split(sizes), strict=True):
        yield run.view(n, length, -1)
