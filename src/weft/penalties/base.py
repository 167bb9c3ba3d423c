"""What the whole model pays for its weights."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from torch import Tensor, nn

Named = Sequence[tuple[str, nn.Parameter]]


class Penalty(nn.Module, ABC):
    """Belongs to the model, not to a task: its gradient is added after the tasks' gradients have been combined."""

    @abstractmethod
    def forward(self, parameters: Named) -> Tensor:
        """A number, from the parameters that train in this step."""

    def prepare(self, parameters: Named) -> None:
        """Called once before training, with all parameters of the model."""

    def after_step(self, parameters: Named) -> None:
        """Called after each optimizer step, for penalties that remember."""
