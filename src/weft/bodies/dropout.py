"""Dropout with fast random numbers on a CPU.

torch draws the random numbers of all entries one by one, which takes as long as a sixth of a training step. Here each
entry uses sixteen random bits from a fast generator that is seeded by torch's generator, so the masks are still
determined by torch's seed. On a GPU, torch's dropout is used.
"""

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

STEPS = 1 << 16
"""p is rounded to a multiple of 1 / STEPS."""


def drop(values: Tensor, p: float) -> Tensor:
    """Set each entry to zero with probability p and divide the others by 1 - p."""
    if p == 0:
        return values
    return values * kept(values, p) if values.device.type == "cpu" else F.dropout(values, p)


def drop_alike(vectors: Sequence[Tensor], p: float) -> list[Tensor]:
    """Apply one dropout mask to several tensors of the same shape.

    The two sides of a pair are compared entry by entry. With a separate mask per side, training computes about
    `(1 - p) cos(u, v)` where evaluation computes `cos(u, v)`. With a shared mask, the cosine keeps its expectation.
    """
    if p == 0:
        return list(vectors)
    first = vectors[0]
    mask = kept(first, p) if first.device.type == "cpu" else F.dropout(torch.ones_like(first), p)
    return [vector * mask for vector in vectors]


def kept(values: Tensor, p: float) -> Tensor:
    """Return a mask of the same shape: 1 / (1 - p) for entries that are kept, 0 for dropped entries.

    The mask has the dtype of `values` because torch processes booleans one by one.
    """
    seed = int(torch.randint(1 << 62, ()))
    count = values.numel()
    words = np.random.SFC64(seed).random_raw(count // 4 + 1)
    bits = torch.from_numpy(words.view(np.int16))[:count].view(values.shape)
    return bits.ge_(round(p * STEPS) - STEPS // 2).to(values.dtype).mul_(1 / (1 - p))


class Dropout(nn.Module):
    """`drop` in training mode, the identity in evaluation mode."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, values: Tensor) -> Tensor:
        return drop(values, self.p) if self.training else values
