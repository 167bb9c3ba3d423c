"""Conversion of one or two texts to token sequences. With BERT's special tokens (each body has its own template):

single   [CLS] a [SEP]
bi       [CLS] a [SEP]   and   [CLS] b [SEP]
cross    [CLS] a [SEP] b [SEP]      token type 0 up to the first [SEP], then 1
concat   [CLS] a b [SEP]            token type 0
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from weft.data.template import Template
from weft.foundation.values import Encoded

Reading = Literal["single", "bi", "cross", "concat"]
Ids = NDArray[np.int32]
Lengths = NDArray[np.int64]

TokenSequence = tuple[NDArray[np.int64], int]
"""Token ids, and the number of tokens at the end with token type 1."""


@dataclass(frozen=True)
class Reader:
    """Builder of sequences of at most `max_length` tokens, including special tokens."""

    reading: Reading
    template: Template
    max_length: int

    @property
    def texts(self) -> int:
        """Number of texts per row."""
        return 1 if self.reading == "single" else 2

    @property
    def _specials(self) -> int:
        """Number of special tokens in a sequence of two texts."""
        return self.template.around_two if self.reading == "cross" else self.template.around_one

    def alone(self) -> "Reader":
        """Return a reader for single texts with the same maximum length, for embeddings."""
        return replace(self, reading="single")

    def sequences(self, first: Ids, second: Ids | None = None, *negatives: Ids) -> list[TokenSequence]:
        """Return the sequences of a row: two for bi and one per hard negative, one otherwise."""
        if self.reading in ("cross", "concat"):
            assert second is not None
            return [self._pair(first, second)]
        sides = [first] if second is None or self.reading == "single" else [first, second, *negatives]
        return [self._alone(side) for side in sides]

    def token_counts(self, lengths: Sequence[Lengths]) -> Lengths:
        """Return the [n] numbers of tokens per row that the body receives, given the text lengths of each column."""
        if self.reading in ("cross", "concat"):
            sequences = [lengths[0] + lengths[1] + self._specials]
        else:
            sequences = [side + self.template.around_one for side in lengths]
        counts: Lengths = np.minimum(np.stack(sequences), self.max_length).sum(axis=0)
        return counts

    def is_cut(self, lengths: Sequence[Lengths]) -> NDArray[np.bool_]:
        """Return an [n] mask of the rows that are truncated."""
        if self.reading in ("cross", "concat"):
            return np.asarray(lengths[0] + lengths[1] + self._specials > self.max_length)
        return np.asarray(np.max(np.stack(lengths), axis=0) + self.template.around_one > self.max_length)

    def _alone(self, ids: Ids) -> TokenSequence:
        kept = ids[: self.max_length - self.template.around_one]
        return _joined(self.template.before, kept, self.template.after), 0

    def _pair(self, first: Ids, second: Ids) -> TokenSequence:
        n, m = longest_first(len(first), len(second), self.max_length - self._specials)
        before, after = self.template.before, self.template.after
        if self.reading == "concat":
            return _joined(before, first[:n], second[:m], after), 0
        sequence = _joined(before, first[:n], self.template.between, second[:m], after)
        return sequence, m + len(after) if self.template.typed else 0


def _joined(*pieces: Ids | tuple[int, ...]) -> NDArray[np.int64]:
    return np.concatenate([np.asarray(piece, dtype=np.int64) for piece in pieces])


def longest_first(first: int, second: int, room: int) -> tuple[int, int]:
    """Return the lengths after longest-first truncation, as in the tokenizers library.

    The shorter text is not truncated if it fits into half of `room`. Otherwise both texts get half, and an odd
    token goes to the longer text (to the second if both have the same length).
    """
    if first + second <= room:
        return first, second
    shorter = min(min(first, second), room // 2)
    longer = room - shorter
    return (longer, shorter) if first > second else (shorter, longer)


def pack(sequences: Sequence[TokenSequence]) -> Encoded:
    """Concatenate sequences into one packed batch."""
    ids = np.concatenate([ids for ids, _ in sequences])
    lengths = tuple(len(ids) for ids, _ in sequences)
    segments = np.zeros(len(ids), dtype=np.int64)
    for end, (_, of_second) in zip(np.cumsum(lengths), sequences, strict=True):
        segments[end - of_second : end] = 1
    return Encoded(torch.from_numpy(ids), torch.from_numpy(segments), lengths)
