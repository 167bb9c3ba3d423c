"""One vector for each sequence."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

from torch import Tensor, nn

from weft.bodies.body import Body
from weft.foundation.components import Component
from weft.foundation.values import Encoded


class Pooling(nn.Module, ABC):
    """Hidden states of packed tokens -> one vector for each sequence. Padded states give the same vectors."""

    first_only = False
    """whether it looks at the first token of each sequence and at no other"""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        """size of the vectors it gives"""

    @abstractmethod
    def forward(self, hidden: Tensor, encoded: Encoded) -> Tensor:
        """`hidden` [t, w] of the tokens in `encoded` -> [n, width]"""

    @abstractmethod
    def padded(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """The same for `hidden` [n, l, w], where `mask` [n, l] is 1 for real tokens: for export"""


class PoolingOptions(Component):
    """The base of all config classes of poolings."""

    @abstractmethod
    def build(self, body: Body) -> Pooling:
        """A pooling of the states of a body."""


def by_run(hidden: Tensor, encoded: Encoded) -> Iterator[Tensor]:
    """[n, l, w] for each run of sequences of equal length: real tokens only, nothing to mask."""
    sizes = [n * length for n, length in encoded.runs]
    for (n, length), run in zip(encoded.runs, hidden.split(sizes), strict=True):
        yield run.view(n, length, -1)
