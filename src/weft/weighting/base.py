"""Base classes of weightings: combining the losses of a window's tasks into one."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from weft.foundation.components import Component


class Weighting(nn.Module, ABC):
    """Losses [m] of the tasks in a window -> weighted losses [m], whose sum is minimized.

    A weighted loss is affine in the loss: its slope can depend on learned parameters and on earlier steps, but not on
    the losses of the window. The slopes are therefore known before the first forward pass, and the passes of a window
    can run one at a time. Tasks that are not in a window contribute nothing to it. All state is in parameters and
    buffers, which checkpoints save.
    """

    compares_tasks: ClassVar[bool] = False
    """whether it has no effect on a window with only one task"""
    heeds_scale: ClassVar[bool] = False
    """whether it balances losses of different scale; if not, `weft check` warns about them"""
    idle_steps: int = 0
    """number of steps at the start in which it has no effect"""
    lr: float | None = None
    """learning rate of its parameters. Defaults to the recipe's learning rate."""

    @abstractmethod
    def forward(self, losses: Tensor, tasks: tuple[str, ...]) -> Tensor:
        """[m] -> [m]"""

    def calibrate(self, constants: Mapping[str, float]) -> None:
        """Called once before training with each task's loss for its best constant output."""

    def prepare(self, seed: int) -> None:
        """Called before each window with a seed for that window, for randomized methods."""

    def observe(self, losses: Tensor, tasks: tuple[str, ...]) -> None:
        """Called after each window with its losses, for methods with state."""

    def slopes(self, tasks: tuple[str, ...], like: Tensor) -> Tensor:
        """[m] factor on each task's gradient in this window."""
        losses = like.new_zeros(len(tasks)).requires_grad_()
        with torch.enable_grad():
            (slopes,) = torch.autograd.grad(self(losses, tasks).sum(), losses)
        return slopes


class WeightingOptions(Component):
    """Base class of all weighting configs."""

    @abstractmethod
    def build(self, tasks: tuple[str, ...]) -> Weighting:
        """Build the weighting for these tasks."""
