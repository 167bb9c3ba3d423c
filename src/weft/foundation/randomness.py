"""Random seeds by purpose: a draw depends on its seed and purpose, never on the number of draws before it."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def derive(seed: int, *purpose: str | int) -> int:
    """Derive a 63-bit seed for one purpose, such as ``derive(11711, step, micro, "sentiment", "dropout")``."""
    text = "\x1f".join(str(part) for part in (seed, *purpose))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def generator(seed: int, *purpose: str | int) -> np.random.Generator:
    """Create a NumPy generator for one purpose."""
    return np.random.Generator(np.random.PCG64(derive(seed, *purpose)))


@contextmanager
def seeded(seed: int, *purpose: str | int) -> Iterator[None]:
    """Seed torch's global generator for one purpose (dropout, initial weights) and restore its state afterwards."""
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(derive(seed, *purpose))
        yield
