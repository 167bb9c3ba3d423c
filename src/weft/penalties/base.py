"""Base classes of penalties: terms on the weights or outputs of the whole model."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar

from torch import Tensor, nn

from weft.foundation.components import Component

Named = Sequence[tuple[str, nn.Parameter]]
Divergence = Callable[[Tensor, Tensor], Tensor]
"""Two outputs [n, k] -> divergence of each row [n]."""
Network = TypeVar("Network", bound=nn.Module)


class Penalty(nn.Module, ABC):
    """A term of the model, not of a task. All state is in parameters and buffers, which checkpoints save."""

    def prepare(self, network: nn.Module) -> None:
        """Called once before training."""

    def after_step(self, network: nn.Module) -> None:
        """Called after each optimizer step, for penalties with state."""


class WeightPenalty(Penalty):
    """A function of the weights; its gradient is added after the tasks' gradients have been combined."""

    @abstractmethod
    def forward(self, parameters: Named) -> Tensor:
        """Compute the penalty, a scalar, of the parameters that train in this step."""


class OutputPenalty(Penalty):
    """A function of each row's output and of the output of an earlier model for the same row.

    It is computed in the forward pass of the losses, so it costs one forward pass of the earlier model and no further
    backward pass. Surgery sees it as part of each task's gradient; weightings do not scale it.
    """

    @abstractmethod
    def earlier(self, network: Network) -> Network:
        """Return the model to compare with, of the same class as the network."""

    @abstractmethod
    def forward(self, output: Tensor, before: Tensor, divergence: Divergence) -> Tensor:
        """`output` [n, k] and the earlier model's `before` [n, k] -> [n]"""


class PenaltyOptions(Component):
    """Base class of all penalty configs; `build` returns a `WeightPenalty` or an `OutputPenalty`."""

    @abstractmethod
    def build(self) -> Penalty:
        """Build the penalty."""
