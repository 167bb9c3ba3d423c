"""Windows: a long text becomes several sequences."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from weft.data.long_texts.base import Ids, Lengths, LongTextsOptions, WindowPooling

MOST = 1024
"""Largest `most`."""


class WindowsConfig(LongTextsOptions):
    """Cut a text that is too long into overlapping windows, encode each and pool their vectors to one.

    A text has as few windows as possible, all of the same length, spread evenly from its first to its last token. So
    no window is a short rest, which would count in the mean as much as the others.
    """

    name: Literal["windows"] = "windows"
    overlap: float = Field(default=0.25, ge=0, lt=1)
    """Fraction of `max_length` that adjacent windows share at least."""
    most: int = Field(default=8, ge=1, le=MOST)
    """Maximum number of windows per text. In a text that needs more, they overlap less; if that is not enough, tokens
    between them are left out."""
    pool: WindowPooling = "mean"
    """How the vectors of a text's windows become one: mean, max, or attention (a mean with learned weights)."""

    def pieces(self, ids: Ids, room: int) -> list[Ids]:
        lengths = np.array([len(ids)])
        count, size = int(self.counts(lengths, room)[0]), int(self.sizes(lengths, room)[0])
        starts = [i * (len(ids) - size) // max(count - 1, 1) for i in range(count)]
        return [ids[start : start + size] for start in starts]

    def counts(self, lengths: Lengths, room: int) -> Lengths:
        shared = self._shared(room)
        needed: Lengths = 1 + -(-np.maximum(lengths - room, 0) // (room - shared))
        return np.minimum(needed, self.most)

    def sizes(self, lengths: Lengths, room: int) -> Lengths:
        counts = self.counts(lengths, room)
        sizes: Lengths = -(-(lengths + (counts - 1) * self._shared(room)) // counts)
        return np.minimum(sizes, room)

    def is_cut(self, lengths: Lengths, room: int) -> NDArray[np.bool_]:
        return np.asarray(lengths > self.most * room)

    def _shared(self, room: int) -> int:
        """Return the number of tokens that adjacent windows share at least."""
        return min(int(self.overlap * room), room - 1)

    @property
    def in_words(self) -> str:
        return f"up to {self.most} overlapping windows are read, and their vectors pooled ({self.pool})"

    @property
    def pooled_by(self) -> WindowPooling:
        return self.pool

    @property
    def one_sequence(self) -> bool:
        return False
