"""What the whole model pays for its weights, or for outputs that have moved."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar

from torch import Tensor, nn

from weft.foundation.components import Component

Named = Sequence[tuple[str, nn.Parameter]]
Divergence = Callable[[Tensor, Tensor], Tensor]
"""Two outputs [n, k] -> how far each row is apart [n]."""
Network = TypeVar("Network", bound=nn.Module)


class Penalty(nn.Module, ABC):
    """Belongs to the model, not to a task. All state is in parameters and buffers, which checkpoints save."""

    def prepare(self, network: nn.Module) -> None:
        """Called once before training."""

    def after_step(self, network: nn.Module) -> None:
        """Called after each optimizer step, for penalties that remember."""


class WeightPenalty(Penalty):
    """A function of the weights; its gradient is added after the tasks' gradients have been combined."""

    @abstractmethod
    def forward(self, parameters: Named) -> Tensor:
        """A number, from the parameters that train in this step."""


class OutputPenalty(Penalty):
    """A function of each row's output and of what an earlier model says of the same row.

    It is taken in the pass that computes the losses, so it costs one pass of the earlier model and no gradient of its
    own. Surgery therefore sees it as part of each task's gradient; weightings do not scale it.
    """

    @abstractmethod
    def earlier(self, network: Network) -> Network:
        """The model to compare with, of the same class as the network."""

    @abstractmethod
    def forward(self, output: Tensor, before: Tensor, divergence: Divergence) -> Tensor:
        """`output` [n, k] and the earlier model's `before` [n, k] -> [n]"""


class PenaltyOptions(Component):
    """The base of all config classes of penalties: a `WeightPenalty` or an `OutputPenalty`."""

    @abstractmethod
    def build(self) -> Penalty:
        """A penalty on the whole model."""
