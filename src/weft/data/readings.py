"""Conversion of one or two texts to token sequences. With BERT's special tokens (each body has its own template):

single   [CLS] a [SEP]
bi       [CLS] a [SEP]   and   [CLS] b [SEP]
cross    [CLS] a [SEP] b [SEP]      token type 0 up to the first [SEP], then 1
concat   [CLS] a b [SEP]            token type 0
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from weft.data.template import Template
from weft.data.words import WordTable
from weft.foundation.values import Encoded
from weft.kinds.base import WordSplit

Reading = Literal["single", "bi", "cross", "concat"]
Ids = NDArray[np.int32]
Lengths = NDArray[np.int64]

Subwords = Literal["first", "all"]
WordPlaces = NDArray[np.int64]
"""[words, 3] first character and end of each word, and the position of its first token, or -1 if it has none."""


class TokenSequence(NamedTuple):
    """The tokens of one forward pass through the body."""

    ids: NDArray[np.int64]
    of_second: int = 0
    """Number of tokens at the end with token type 1."""
    words: WordPlaces | None = None
    """The words of the text, if the labels are of words. They make no difference to the body."""


@dataclass(frozen=True)
class Reader:
    """Builder of sequences of at most `max_length` tokens, including special tokens."""

    reading: Reading
    template: Template
    max_length: int
    split: WordSplit | None = None
    """How texts are split into words; None if the labels are not of words."""
    subwords: Subwords = "first"
    """Which tokens of a word are trained to predict its label. The first token always predicts it."""

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
        return replace(self, reading="single", split=None)

    def without_words(self) -> "Reader":
        """Return a reader of the same sequences without their words."""
        return replace(self, split=None, subwords="first")

    def sequences(self, first: Ids, second: Ids | None, words: WordTable | None = None) -> list[TokenSequence]:
        """Return one sequence per forward pass through the body: two for bi, one otherwise.

        `words` are those of the first text, if the labels are of words.
        """
        if words is not None:
            return [self._alone(first)._replace(words=self._places(words))]
        if self.reading in ("cross", "concat"):
            assert second is not None
            return [self._pair(first, second)]
        sides = [first] if second is None or self.reading == "single" else [first, second]
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

    def _places(self, words: WordTable) -> WordPlaces:
        """Return the characters and the position of each word; -1 for words that are cut off or have no token."""
        places = words[:, :3].astype(np.int64)
        seen = (places[:, 2] >= 0) & (places[:, 2] < self.max_length - self.template.around_one)
        places[:, 2] = np.where(seen, places[:, 2] + len(self.template.before), -1)
        return places

    def trained_tokens(self, words: WordTable) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the positions [u] that are trained to predict labels of words, and the number [u] of the word."""
        room, before = self.max_length - self.template.around_one, len(self.template.before)
        last = np.minimum(words[:, 3], room) if self.subwords == "all" else np.minimum(words[:, 2] + 1, room)
        counts = np.where(words[:, 2] >= 0, np.maximum(last - words[:, 2], 0), 0).astype(np.int64)
        numbers = np.repeat(np.arange(len(words)), counts)
        within = np.arange(len(numbers)) - np.repeat(counts.cumsum() - counts, counts)
        return words[numbers, 2] + within + before, numbers

    def _alone(self, ids: Ids) -> TokenSequence:
        kept = ids[: self.max_length - self.template.around_one]
        return TokenSequence(_joined(self.template.before, kept, self.template.after))

    def _pair(self, first: Ids, second: Ids) -> TokenSequence:
        n, m = longest_first(len(first), len(second), self.max_length - self._specials)
        before, after = self.template.before, self.template.after
        if self.reading == "concat":
            return TokenSequence(_joined(before, first[:n], second[:m], after))
        sequence = _joined(before, first[:n], self.template.between, second[:m], after)
        return TokenSequence(sequence, m + len(after) if self.template.typed else 0)


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
    ids = np.concatenate([sequence.ids for sequence in sequences])
    lengths = tuple(len(sequence.ids) for sequence in sequences)
    segments = np.zeros(len(ids), dtype=np.int64)
    for end, sequence in zip(np.cumsum(lengths), sequences, strict=True):
        segments[end - sequence.of_second : end] = 1
    return Encoded(torch.from_numpy(ids), torch.from_numpy(segments), lengths)
