"""Dropout whose random numbers cost little on a CPU.

torch draws one number after the other for each entry, which takes as long as a sixth of a training step. Here sixteen
random bits decide an entry, taken from a fast generator that is seeded by torch's own: the masks are still a function
of the seed that torch's generator was set to. On a GPU torch's dropout is used as it is.
"""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

STEPS = 1 << 16
"""p is rounded to a multiple of 1 / STEPS"""


def drop(values: Tensor, p: float) -> Tensor:
    """Each entry is set to zero with probability p; the others are divided by 1 - p."""
    if p == 0:
        return values
    if values.device.type != "cpu":
        return F.dropout(values, p)
    dropped: Tensor = _Drop.apply(values, _kept(values, p), 1 / (1 - p))  # type: ignore[no-untyped-call]
    return dropped


def _kept(values: Tensor, p: float) -> Tensor:
    """A boolean mask of the same shape, true with probability 1 - p."""
    seed = int(torch.randint(1 << 62, ()))
    count = values.numel()
    words = np.random.SFC64(seed).random_raw(count // 4 + 1)
    bits = torch.from_numpy(words.view(np.int16))[:count].view(values.shape)
    return bits >= round(p * STEPS) - STEPS // 2


class _Drop(torch.autograd.Function):
    """torch's own product with a mask would keep a mask of floats and go over it twice."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, kept: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(kept)
        ctx.scale = scale
        return torch.where(kept, values * scale, 0.0)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (kept,) = ctx.saved_tensors
        return torch.where(kept, gradient * ctx.scale, 0.0), None, None


class Dropout(nn.Module):
    """`drop` in training, nothing otherwise."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, values: Tensor) -> Tensor:
        return drop(values, self.p) if self.training else values
