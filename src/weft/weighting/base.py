"""How the losses of a window's tasks become one."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from weft.foundation.components import Component


class Weighting(nn.Module, ABC):
    """Losses [m] of the tasks in a window -> weighted losses [m], whose sum is minimized.

    A weighted loss is affine in its loss: its slope may depend on learnt parameters and on earlier steps, not on the
    window's own losses. So the slopes are known before the first forward pass, which lets a window of several passes be
    run one at a time. Tasks that are not in a window contribute nothing to it. All state is in parameters and buffers,
    which checkpoints save.
    """

    compares_tasks: ClassVar[bool] = False
    """whether it does nothing to a window that holds one task alone"""
    heeds_scale: ClassVar[bool] = False
    """whether losses of unlike scale are its business; if not, `weft check` warns of them"""
    idle_steps: int = 0
    """how many steps it does nothing at first"""
    lr: float | None = None
    """the learning rate of its parameters; the recipe's unless said"""

    @abstractmethod
    def forward(self, losses: Tensor, tasks: tuple[str, ...]) -> Tensor:
        """[m] -> [m]"""

    def calibrate(self, constants: Mapping[str, float]) -> None:
        """Called once before training with each task's loss for its best constant answer."""

    def prepare(self, seed: int) -> None:
        """Called before each window, with a seed of the window's own, for methods that draw."""

    def observe(self, losses: Tensor, tasks: tuple[str, ...]) -> None:
        """Called after each window with its losses, for methods that remember."""

    def slopes(self, tasks: tuple[str, ...], like: Tensor) -> Tensor:
        """[m] by how much each task's gradient is scaled in this window."""
        losses = like.new_zeros(len(tasks)).requires_grad_()
        with torch.enable_grad():
            (slopes,) = torch.autograd.grad(self(losses, tasks).sum(), losses)
        return slopes


class WeightingOptions(Component):
    """The base of all config classes of weightings."""

    @abstractmethod
    def build(self, tasks: tuple[str, ...]) -> Weighting:
        """A weighting of the losses of these tasks."""
