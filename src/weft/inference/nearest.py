"""Exact nearest neighbours by cosine similarity: blocks of similarities, merged to the k best of each query.

Vectors stay on disk and are read block by block, so memory does not grow with their number. There is no index: every
query is compared with every candidate.

A score is the cosine similarity in 64-bit floats, rounded to a multiple of 2^-24, the precision of 32 bits; among equal
scores the earlier candidate is nearer. So the result does not depend on the size of blocks.

Products of 32-bit floats, which are faster, only choose a pool of candidates that is larger than k. Their rounding
error has a bound, which tells for each query whether the pool is sure to hold its k nearest. The other queries, such
as those with many equal candidates, are searched again in 64 bits.
"""

from collections.abc import Callable, Iterator
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
SPARE = 16
"""candidates in the pool of a query besides the k that it asks for"""
AGAIN = 512
"""queries at a time that are searched again in 64 bits"""
PAIRS = 8192
"""pairs at a time that are scored in 64 bits"""
GRID = 2**24
"""scores are multiples of 1 / GRID, which are exact in 32 bits"""
NONE = -2.0
"""stands for the score -inf in a key"""
LOW = 0xFFFFFFFF
"""the lower half of a key"""

Hidden = Callable[[range], tuple[Rows, Rows]]
"""queries -> (place of a query in the range, candidate) of every pair that is left out"""


class VectorFile:
    """Vectors [n, width] in an .npy file of 32-bit floats. Blocks are read, not mapped."""

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
        """Return the vectors of some rows with length 1, in 64 bits; zero for a vector without a direction (zero or
        not finite)."""
        count = (min(stop, self.rows) - start) * self.width
        values = np.fromfile(self.path, "<f4", count, offset=self._start + 4 * start * self.width)
        block = torch.from_numpy(values.reshape(-1, self.width)).double()
        norms = block.norm(dim=1, keepdim=True)
        return torch.where((norms > 0) & torch.isfinite(norms), block / norms, 0.0)


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
    search = _Search(queries, rows, candidates, limits)
    rough, pool = search.pool(k + SPARE)
    keys = _keys(search.scores(pool, torch.isfinite(rough)), pool).topk(k, dim=1).values
    edge = _scores(keys)[:, -1].clamp(min=limits.at_least)
    # what is not in the pool has at most the pool's last score; nothing is outside of a pool with empty places
    unsure = torch.isfinite(rough[:, -1]) & (rough[:, -1] + search.error >= edge)
    for places in unsure.nonzero()[:, 0].split(AGAIN):
        keys[places] = search.again(places, k)
    scores = _scores(keys)
    return Neighbours((LOW - (keys & LOW)).numpy(), scores.where(scores >= limits.at_least, -torch.inf).numpy())


class _Search:
    """Compares a range of queries with all candidates."""

    def __init__(self, queries: VectorFile, rows: range, candidates: VectorFile, limits: Limits) -> None:
        self.asked = queries.unit(rows.start, rows.stop)
        self.candidates = candidates
        self.error = (queries.width + 8) * 2.0**-24
        """bound on the difference between a product in 32 bits and a score: the sum of `width` products, the rounding
        of both vectors and of the score"""
        self.usable = limits.usable
        nothing = np.empty(0, np.int64)
        self.at, self.hidden = limits.hidden(rows) if limits.hidden else (nothing, nothing)
        most = np.inf if limits.at_most is None else limits.at_most[rows.start : rows.stop]
        self.most = torch.as_tensor(most, dtype=torch.float32).expand(len(rows))

    def pool(self, size: int) -> tuple[Tensor, Tensor]:
        """[n, size] similarities in 32 bits and numbers of the nearest candidates; -inf for an empty place."""
        asked, places = self.asked.float(), torch.arange(len(self.asked))
        scores = torch.full((len(asked), size), -torch.inf)
        found = torch.zeros((len(asked), size), dtype=torch.int64)
        for start, block in self._blocks():
            cosines = asked @ block.float().T
            self._exclude(cosines, places, start, block, self.error)
            best = cosines.topk(min(size, len(block)), dim=1)
            together, numbers = torch.cat([scores, best.values], 1), torch.cat([found, best.indices + start], 1)
            scores, order = together.topk(size, dim=1)
            found = numbers.gather(1, order)
        return scores, found

    def scores(self, pool: Tensor, taken: Tensor) -> Tensor:
        """[n, size] scores of the candidates in a pool; -inf for an empty place or a score that is too high."""
        scores = torch.full(pool.shape, -torch.inf)
        for start, block in self._blocks():
            here = taken & (pool >= start) & (pool < start + len(block))
            for at, place in (pairs.T for pairs in here.nonzero().split(PAIRS)):
                scores[at, place] = _rounded((self.asked[at] * block[pool[at, place] - start]).sum(dim=1))
        return scores.masked_fill(scores > self.most[:, None], -torch.inf)

    def again(self, places: Tensor, k: int) -> Tensor:
        """[n, k] keys of the nearest candidates of some queries, from the scores of all candidates."""
        keys = _keys(torch.full((len(places), k), -torch.inf), torch.zeros(1, dtype=torch.int64))
        for start, block in self._blocks():
            cosines = _rounded(self.asked[places] @ block.T)
            self._exclude(cosines, places, start, block, 0.0)
            own = _keys(cosines, torch.arange(start, start + len(block)))
            keys = torch.cat([keys, own.topk(min(k, len(block)), dim=1).values], 1).topk(k, dim=1).values
        return keys

    def _blocks(self) -> Iterator[tuple[int, Tensor]]:
        for start in range(0, len(self.candidates), CANDIDATES):
            yield start, self.candidates.unit(start, start + CANDIDATES)

    def _exclude(self, cosines: Tensor, places: Tensor, start: int, block: Tensor, error: float) -> None:
        """Set similarities [n, block] of the queries in `places` to -inf where a candidate does not count."""
        here = (self.hidden >= start) & (self.hidden < start + len(block))
        line = torch.full((len(self.asked),), -1).index_copy(0, places, torch.arange(len(places)))
        lines, columns = line[torch.from_numpy(self.at[here])], torch.from_numpy(self.hidden[here] - start)
        cosines[lines[lines >= 0], columns[lines >= 0]] = -torch.inf
        cosines[:, ~block.any(dim=1)] = -torch.inf
        cosines[~self.asked[places].any(dim=1)] = -torch.inf
        if self.usable is not None:
            cosines[:, torch.from_numpy(~self.usable[start : start + len(block)])] = -torch.inf
        if torch.isfinite(self.most).any():
            cosines.masked_fill_(cosines > self.most[places, None] + error, -torch.inf)


def _rounded(cosines: Tensor) -> Tensor:
    """Scores from similarities of 64 bits."""
    return ((cosines * GRID).round() / GRID).float()


def _keys(scores: Tensor, rows: Tensor) -> Tensor:
    """Whole numbers in the order of the scores, for equal scores in the reverse order of the rows."""
    return ((scores.clamp(min=NONE) * GRID).long() << 32) | (LOW - rows)


def _scores(keys: Tensor) -> Tensor:
    """The scores of keys."""
    scores = (keys >> 32).float() / GRID
    return scores.where(scores > NONE, -torch.inf)


def similarities(first: VectorFile, second: VectorFile, rows: range) -> NDArray[np.float32]:
    """[n] score of the same rows of two files"""
    one, two = (file.unit(rows.start, rows.stop) for file in (first, second))
    found: NDArray[np.float32] = _rounded((one * two).sum(dim=1)).numpy()
    return found
