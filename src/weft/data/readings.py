"""How one text, or two, become token sequences. With BERT's special tokens (each body has its own template):

single   [CLS] a [SEP]
bi       [CLS] a [SEP]   and   [CLS] b [SEP]
cross    [CLS] a [SEP] b [SEP]      segment 0 up to the first [SEP], then 1
concat   [CLS] a b [SEP]            one segment
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
"""token ids, and how many of the last ones belong to segment 1"""


@dataclass(frozen=True)
class Reader:
    """Builds sequences of at most `max_length` tokens, special tokens included."""

    reading: Reading
    template: Template
    max_length: int

    @property
    def texts(self) -> int:
        """how many texts a row must have"""
        return 1 if self.reading == "single" else 2

    @property
    def _specials(self) -> int:
        """special tokens in a sequence of two texts"""
        return self.template.around_two if self.reading == "cross" else self.template.around_one

    def alone(self) -> "Reader":
        """the same lengths for one text by itself (embeddings)"""
        return replace(self, reading="single")

    def sequences(self, first: Ids, second: Ids | None) -> list[TokenSequence]:
        """One sequence for each pass through the body: two for bi, else one."""
        if self.reading in ("cross", "concat"):
            assert second is not None
            return [self._pair(first, second)]
        sides = [first] if second is None or self.reading == "single" else [first, second]
        return [self._alone(side) for side in sides]

    def token_counts(self, lengths: Sequence[Lengths]) -> Lengths:
        """[n] tokens that the body sees of rows whose texts have these lengths, column by column."""
        if self.reading in ("cross", "concat"):
            sequences = [lengths[0] + lengths[1] + self._specials]
        else:
            sequences = [side + self.template.around_one for side in lengths]
        counts: Lengths = np.minimum(np.stack(sequences), self.max_length).sum(axis=0)
        return counts

    def is_cut(self, lengths: Sequence[Lengths]) -> NDArray[np.bool_]:
        """[n] whether a row loses tokens."""
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
    """Lengths after cutting the longer text first, as the tokenizers library cuts a pair.

    The shorter text stays whole while it fits into half of the room; beyond that both get half, and the odd
    token goes to the longer one (to the second if they are equally long).
    """
    if first + second <= room:
        return first, second
    shorter = min(min(first, second), room // 2)
    longer = room - shorter
    return (longer, shorter) if first > second else (shorter, longer)


def pack(sequences: Sequence[TokenSequence]) -> Encoded:
    """Sequences laid end to end."""
    ids = np.concatenate([ids for ids, _ in sequences])
    lengths = tuple(len(ids) for ids, _ in sequences)
    segments = np.zeros(len(ids), dtype=np.int64)
    for end, (_, of_second) in zip(np.cumsum(lengths), sequences, strict=True):
        segments[end - of_second : end] = 1
    return Encoded(torch.from_numpy(ids), torch.from_numpy(segments), lengths)
