"""Values that rooms exchange. t = tokens, n = sequences or rows, m = tasks, w = width of the body."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Encoded:
    """A packed batch: token sequences end to end, without padding."""

    ids: Tensor
    """[t] int64, vocabulary entries"""
    segments: Tensor
    """[t] int64, 0 for the first text and 1 for the second"""
    lengths: tuple[int, ...]
    """n sequence lengths that sum to t"""

    @cached_property
    def runs(self) -> list[tuple[int, int]]:
        """(sequences, length) of each run of adjacent sequences of equal length: attention needs no mask inside one"""
        return [(len(list(group)), length) for length, group in groupby(self.lengths)]

    @cached_property
    def starts(self) -> Tensor:
        """[n] index of each sequence's first token"""
        lengths = torch.tensor(self.lengths, device=self.ids.device)
        return lengths.cumsum(0) - lengths

    @cached_property
    def owners(self) -> Tensor:
        """[t] number of the sequence that each token belongs to"""
        lengths = torch.tensor(self.lengths, device=self.ids.device)
        return torch.repeat_interleave(torch.arange(len(self.lengths), device=self.ids.device), lengths)

    @cached_property
    def positions(self) -> Tensor:
        """[t] position of each token in its sequence"""
        return torch.arange(len(self.ids), device=self.ids.device) - self.starts[self.owners]

    @staticmethod
    def join(parts: Sequence["Encoded"]) -> "Encoded":
        """Concatenate all sequences of all parts, in order; ``hidden.split([len(p.ids) for p in parts])`` undoes it."""
        if len(parts) == 1:
            return parts[0]
        return Encoded(
            ids=torch.cat([part.ids for part in parts]),
            segments=torch.cat([part.segments for part in parts]),
            lengths=tuple(length for part in parts for length in part.lengths),
        )

    def to(self, device: torch.device) -> "Encoded":
        return Encoded(self.ids.to(device), self.segments.to(device), self.lengths)


@dataclass(frozen=True)
class Words:
    """The words of a batch that a task reads, row by row. u = words; with `subwords = "all"`, sub-tokens of words."""

    rows: Tensor
    """[u] int64, row of each word, ascending"""
    positions: Tensor
    """[u] int64, position in the row's sequence of the token that stands for the word"""
    count: int
    """number of rows; a row may have no word"""

    def tokens(self, encoded: Encoded) -> Tensor:
        """[u] index of each word's token in a packed batch with one sequence per row."""
        return encoded.starts[self.rows] + self.positions

    @cached_property
    def lengths(self) -> Tensor:
        """[n] number of words of each row"""
        return torch.bincount(self.rows, minlength=self.count)

    def mean(self, values: Tensor) -> Tensor:
        """[n] mean over the words of each row, from values [u]; 0 for a row without words"""
        return values.new_zeros(self.count).index_add(0, self.rows, values) / self.lengths.clamp(min=1)

    def padded(self, values: Tensor, filling: float) -> Tensor:
        """[n, longest, ...] the values [u, ...] of each row's words, padded"""
        longest = int(self.lengths.max()) if self.count else 0
        found = values.new_full((self.count, max(longest, 1), *values.shape[1:]), filling)
        return found.index_put((self.rows, self.places), values)

    @cached_property
    def places(self) -> Tensor:
        """[u] number of each word in its row"""
        starts = self.lengths.cumsum(0) - self.lengths
        return torch.arange(len(self.rows), device=self.rows.device) - starts[self.rows]

    def to(self, device: torch.device) -> "Words":
        return Words(self.rows.to(device), self.positions.to(device), self.count)


@dataclass(frozen=True)
class Batch:
    """Rows of one task, ready for the body."""

    task: str
    rows: Rows
    """[n] row numbers in the task's set, in the order of `target` and of every sequence list in `texts`"""
    texts: tuple[Encoded, ...]
    """one entry, or two for a bi reading; each has n sequences"""
    target: Tensor
    """[n] class numbers or values, or [n, labels] for multilabel; [u] for labels of words"""
    words: Words | None = None
    """the words of all rows, if their labels are of words"""

    def to(self, device: torch.device) -> "Batch":
        words = None if self.words is None else self.words.to(device)
        return Batch(self.task, self.rows, tuple(t.to(device) for t in self.texts), self.target.to(device), words)


@dataclass(frozen=True)
class Part:
    """One task's rows in one forward pass of a window."""

    task: str
    micro: int
    """index of the forward pass in the window; 0 without gradient accumulation"""
    rows: Rows


@dataclass(frozen=True)
class Window:
    """All batches of one optimizer step."""

    step: int
    parts: tuple[Part, ...]

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """distinct tasks, in order of first appearance"""
        return tuple(dict.fromkeys(part.task for part in self.parts))

    @cached_property
    def micros(self) -> list[list[Part]]:
        """the parts of each forward pass"""
        ordered = sorted(self.parts, key=lambda part: part.micro)
        return [list(group) for _, group in groupby(ordered, key=lambda part: part.micro)]

    def count(self, task: str) -> int:
        """Number of rows of a task in the whole window, which its loss is averaged over."""
        return sum(len(part.rows) for part in self.parts if part.task == task)
