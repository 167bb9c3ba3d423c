"""What a task adds to its loss to be less sure of itself."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from torch import Tensor, nn

from weft.foundation.components import Component
from weft.kinds.labels import Labels

Run = Callable[[Tensor, int], Tensor]
"""(embeddings [t, w], draw) -> output [n, k]: through the body and the head again. Draw 0 has the dropout masks of the
clean pass, any other draw has masks of its own."""
Read = Callable[[Tensor], Tensor]
"""output [n, k] -> probabilities [n, classes] or numbers [n]"""


class Regularizer(nn.Module, ABC):
    """Belongs to a task: a term for each row, added to the row's loss."""

    def __init__(self, weight: float) -> None:
        super().__init__()
        self.weight = weight

    @abstractmethod
    def forward(self, run: Run, embedded: Tensor, output: Tensor, divergence: "Divergence") -> Tensor:
        """`embedded` [t, w] is what entered the body and `output` [n, k] what came out -> [n], weighted"""


class RegularizerOptions(Component):
    """The base of all config classes of regularizers."""

    @abstractmethod
    def build(self) -> Regularizer:
        """A regularizer for one task."""


class Divergence:
    """How far two outputs are apart: symmetrized KL for classes, squared error for numbers. [n]"""

    def __init__(self, labels: Labels, read: Read) -> None:
        self.kind = labels.kind
        self.read = read

    def __call__(self, one: Tensor, two: Tensor) -> Tensor:
        return self.kind.divergence(self.read(one), self.read(two))
