"""Dropout whose random numbers cost little on a CPU.

torch draws one number after the other for each entry, which takes as long as a sixth of a training step. Here sixteen
random bits decide an entry, taken from a fast generator that is seeded by torch's own: the masks are still a function
of the seed that torch's generator was set to. On a GPU torch's dropout is used as it is.
"""

from collections.abc import Sequence

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
    return values * kept(values, p) if values.device.type == "cpu" else F.dropout(values, p)


def drop_alike(vectors: Sequence[Tensor], p: float) -> list[Tensor]:
    """Drop the same entries of several tensors of one shape.

    Two sides of a pair are compared entry by entry. With a mask for each side, training sees about `(1 - p) cos(u, v)`
    where evaluation sees `cos(u, v)`; with one mask for both, the cosine keeps its expectation.
    """
    if p == 0:
        return list(vectors)
    first = vectors[0]
    mask = kept(first, p) if first.device.type == "cpu" else F.dropout(torch.ones_like(first), p)
    return [vector * mask for vector in vectors]


def kept(values: Tensor, p: float) -> Tensor:
    """A mask of the same shape: 1 / (1 - p) where an entry stays, 0 elsewhere.

    It has numbers of the same type because torch goes over booleans one by one.
    """
    seed = int(torch.randint(1 << 62, ()))
    count = values.numel()
    words = np.random.SFC64(seed).random_raw(count // 4 + 1)
    bits = torch.from_numpy(words.view(np.int16))[:count].view(values.shape)
    return bits.ge_(round(p * STEPS) - STEPS // 2).to(values.dtype).mul_(1 / (1 - p))


class Dropout(nn.Module):
    """`drop` in training, nothing otherwise."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, values: Tensor) -> Tensor:
        return drop(values, self.p) if self.training else values
