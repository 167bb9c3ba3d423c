"""Base classes of regularizers: terms added to the loss of each row of one task."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from torch import Tensor, nn

from weft.foundation.components import Component
from weft.foundation.values import Words
from weft.kinds.labels import Labels

Run = Callable[[Tensor, int], Tensor]
"""(embeddings [t, w], draw) -> output [n, k]: another forward pass through body and head. Draw 0 uses the dropout masks
of the clean pass, every other draw uses different masks."""
Read = Callable[[Tensor], Tensor]
"""output [n, k] -> probabilities [n, classes] or numbers [n]"""


class Regularizer(nn.Module, ABC):
    """A term per row of a task, added to the row's loss."""

    def __init__(self, weight: float) -> None:
        super().__init__()
        self.weight = weight

    @abstractmethod
    def forward(self, run: Run, embedded: Tensor, output: Tensor, divergence: "Divergence") -> Tensor:
        """`embedded` [t, w] are the inputs of the body, `output` [n, k] the outputs of the head -> [n], weighted"""


class RegularizerOptions(Component):
    """Base class of all regularizer configs."""

    @abstractmethod
    def build(self) -> Regularizer:
        """Build the regularizer of one task."""


class Divergence:
    """[n] divergence of two outputs: symmetrized KL divergence for classes, squared error for numbers."""

    def __init__(self, labels: Labels, read: Read) -> None:
        self.kind = labels.kind
        self.read = read

    def __call__(self, one: Tensor, two: Tensor) -> Tensor:
        return self.kind.divergence(self.read(one), self.read(two))

    def of(self, words: Words | None) -> Callable[[Tensor, Tensor], Tensor]:
        """Return the divergence of the rows of a batch: for labels of words, the sum over each row's words."""
        return self if words is None else lambda one, two: words.total(self(one, two))
