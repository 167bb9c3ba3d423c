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

    All windows of a text have the maximum length. They are spread evenly from its first to its last token, so that
    no window is a short rest, which would count in the mean as much as the others.
    """

    name: Literal["windows"] = "windows"
    overlap: float = Field(default=0.25, ge=0, lt=1)
    """Fraction of a window that it shares at least with the next one."""
    most: int = Field(default=8, ge=1, le=MOST)
    """Maximum number of windows per text. In a text that needs more, they overlap less; if that is not enough, tokens
    between them are left out."""
    pool: WindowPooling = "mean"
    """How the vectors of a text's windows become one: mean, max, or attention (a mean with learned weights)."""

    def pieces(self, ids: Ids, room: int) -> list[Ids]:
        count = int(self.counts(np.array([len(ids)]), room)[0])
        if count == 1:
            return [ids[:room]]
        starts = [i * (len(ids) - room) // (count - 1) for i in range(count)]
        return [ids[start : start + room] for start in starts]

    def counts(self, lengths: Lengths, room: int) -> Lengths:
        step = max(1, room - int(self.overlap * room))
        needed: Lengths = 1 + -(-np.maximum(lengths - room, 0) // step)
        return np.minimum(needed, self.most)

    def is_cut(self, lengths: Lengths, room: int) -> NDArray[np.bool_]:
        return np.asarray(lengths > self.most * room)

    @property
    def in_words(self) -> str:
        return (
            f"at most {self.most} overlapping windows of that length are read, and their vectors pooled ({self.pool})"
        )

    @property
    def pooled_by(self) -> WindowPooling:
        return self.pool

    @property
    def one_sequence(self) -> bool:
        return False
