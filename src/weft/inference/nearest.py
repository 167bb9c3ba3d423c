"""Exact nearest neighbours by cosine similarity: blocks of similarities, merged to the k best of each query.

Vectors stay on disk and are read block by block, so memory does not grow with their number. There is no index: every
query is compared with every candidate.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft.foundation.errors import UserError
from weft.foundation.values import Rows

QUERIES = 4096
"""queries at a time"""
CANDIDATES = 4096
"""candidates at a time"""

Hidden = Callable[[range], tuple[Rows, Rows]]
"""queries -> (place of a query in the range, candidate) of every pair that is left out"""


class VectorFile:
    """Vectors [n, width] in an .npy file of 32-bit floats. Blocks are read, not mapped, and scaled to unit length."""

    def __init__(self, path: Path) -> None:
        try:
            mapped = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise UserError(f"{path}: is not a NumPy file ({error})") from None
        if (
            mapped.dtype != np.dtype("<f4")
            or len(mapped.shape) != 2
            or not mapped.flags.c_contiguous
            or not mapped.size
        ):
            found = f"{mapped.dtype} of shape {list(mapped.shape)}"
            raise UserError(f"{path}: has {found}, expected vectors [n, width] of 32-bit floats, at least one")
        self.path = path
        self.rows, self.width = mapped.shape
        self._start = int(mapped.offset)

    def __len__(self) -> int:
        return int(self.rows)

    def unit(self, start: int, stop: int) -> Tensor:
        """Return the vectors of some rows with length 1; zero for a vector without a direction (zero or NaN)."""
        count = (min(stop, self.rows) - start) * self.width
        values = np.fromfile(self.path, "<f4", count, offset=self._start + 4 * start * self.width)
        block = torch.from_numpy(values.reshape(-1, self.width))
        norms = block.norm(dim=1, keepdim=True)
        return torch.where(norms > 0, block / norms, 0.0)


@dataclass(frozen=True)
class Neighbours:
    """The k nearest candidates of some queries, best first. Missing ones have the score -inf."""

    rows: NDArray[np.int64]
    """[n, k] candidates"""
    scores: NDArray[np.float32]
    """[n, k] cosine similarities"""


@dataclass(frozen=True)
class Limits:
    """Which candidates count."""

    at_least: float = -np.inf
    """minimum similarity"""
    at_most: NDArray[np.float32] | None = None
    """[n] maximum similarity for each query"""
    usable: NDArray[np.bool_] | None = None
    """[m] whether a candidate may be found at all"""
    hidden: Hidden | None = None
    """pairs that are left out"""


def nearest(queries: VectorFile, rows: range, candidates: VectorFile, k: int, limits: Limits) -> Neighbours:
    """Return the k nearest candidates of a range of queries. Candidates without a direction are never found."""
    asked = queries.unit(rows.start, rows.stop)
    scores = torch.full((len(rows), k), -torch.inf)
    found = torch.zeros((len(rows), k), dtype=torch.int64)
    at, hidden = limits.hidden(rows) if limits.hidden else (np.empty(0, np.int64), np.empty(0, np.int64))
    most = None if limits.at_most is None else torch.from_numpy(limits.at_most[rows.start : rows.stop, None])
    for start in range(0, len(candidates), CANDIDATES):
        block = candidates.unit(start, start + CANDIDATES)
        cosines = asked @ block.T
        here = (hidden >= start) & (hidden < start + len(block))
        cosines[torch.from_numpy(at[here]), torch.from_numpy(hidden[here] - start)] = -torch.inf
        cosines[:, ~block.any(dim=1)] = -torch.inf
        if limits.usable is not None:
            cosines[:, torch.from_numpy(~limits.usable[start : start + len(block)])] = -torch.inf
        if most is not None:
            cosines.masked_fill_(cosines > most, -torch.inf)
        best = cosines.topk(min(k, len(block)), dim=1)
        # earlier candidates come first, and a stable sort keeps them first among equals
        together, numbers = torch.cat([scores, best.values], 1), torch.cat([found, best.indices + start], 1)
        order = together.argsort(dim=1, descending=True, stable=True)[:, :k]
        scores, found = together.gather(1, order), numbers.gather(1, order)
    scores[scores < limits.at_least] = -torch.inf
    scores[~asked.any(dim=1)] = -torch.inf
    return Neighbours(found.numpy(), scores.numpy())


def similarities(first: VectorFile, second: VectorFile, rows: range) -> NDArray[np.float32]:
    """[n] cosine similarity of the same rows of two files"""
    one, two = (file.unit(rows.start, rows.stop) for file in (first, second))
    found: NDArray[np.float32] = (one * two).sum(dim=1).numpy()
    return found
