"""Conversion of one or two texts to token sequences. With BERT's special tokens (each body has its own template):

single   [CLS] a [SEP]
bi       [CLS] a [SEP]   and   [CLS] b [SEP]
cross    [CLS] a [SEP] b [SEP]      token type 0 up to the first [SEP], then 1
concat   [CLS] a b [SEP]            token type 0

A text that does not fit is cut, or becomes several sequences, as the task's `long_texts` says.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from weft.data.long_texts import LongTextsConfig
from weft.data.long_texts.base import Ids, Lengths
from weft.data.long_texts.truncate import TRUNCATE
from weft.data.template import Template
from weft.data.words import WordTable
from weft.foundation.values import Encoded
from weft.kinds.base import WordSplit

Reading = Literal["single", "bi", "cross", "concat"]

Subwords = Literal["first", "all"]
WordPlaces = NDArray[np.int64]
"""[words, 3] first character and end of each word, and the position of its first token, or -1 if it has none."""


class TokenSequence(NamedTuple):
    """What the body reads of one text or pair: one sequence, or the windows of a long text end to end."""

    ids: NDArray[np.int64]
    of_second: int = 0
    """Number of tokens at the end with token type 1."""
    windows: int = 1
    """Number of sequences in `ids`, all of the same length."""
    words: WordPlaces | None = None
    """The words of the text, if the labels are of words. They make no difference to the body."""
    states: NDArray[np.floating] | None = None
    """[tokens, width] stored outputs of the body's layer `depth`, which a pass starts from."""
    depth: int = 0
    """Layer of the stored states."""

    @property
    def key(self) -> tuple[bytes, int, int]:
        """Equal for sequences that are equal to the body."""
        return self.ids.tobytes(), self.of_second, self.windows


@dataclass(frozen=True)
class Reader:
    """Builder of sequences of at most `max_length` tokens, including special tokens."""

    reading: Reading
    template: Template
    max_length: int
    long_texts: LongTextsConfig = TRUNCATE
    split: WordSplit | None = None
    """How texts are split into words; None if the labels are not of words."""
    subwords: Subwords = "first"
    """Which tokens of a word are trained to predict its label. The first token always predicts it."""

    @property
    def texts(self) -> int:
        """Number of texts per row."""
        return 1 if self.reading == "single" else 2

    @property
    def room(self) -> int:
        """Number of tokens that a sequence has for its text or texts."""
        return self.max_length - self._specials

    @property
    def _specials(self) -> int:
        """Number of special tokens in a sequence."""
        return self.template.around_two if self.reading == "cross" else self.template.around_one

    def alone(self) -> "Reader":
        """Return a reader for single texts with the same maximum length, for embeddings."""
        return replace(self, reading="single", split=None)

    def without_words(self) -> "Reader":
        """Return a reader of the same sequences without their words."""
        return replace(self, split=None, subwords="first")

    def sequences(
        self, first: Ids, second: Ids | None = None, *negatives: Ids, words: WordTable | None = None
    ) -> list[TokenSequence]:
        """Return one entry per text that is encoded: two for bi and one per hard negative, one otherwise.

        `words` are those of the first text, if the labels are of words.
        """
        if words is not None:
            return [self._alone(first)._replace(words=self._places(words))]
        if self.reading in ("cross", "concat"):
            assert second is not None
            return [self._pair(first, second)]
        sides = [first] if second is None or self.reading == "single" else [first, second, *negatives]
        return [self._alone(side) for side in sides]

    def token_counts(self, lengths: Sequence[Lengths]) -> Lengths:
        """Return the [n] numbers of tokens per row that the body receives, given the text lengths of each column."""
        counts: Lengths = self.sequence_tokens(lengths).sum(axis=0)
        return counts

    def sequence_tokens(self, lengths: Sequence[Lengths]) -> Lengths:
        """Return [sequences, n] numbers of tokens of what `sequences` returns, given the text lengths of each column.

        Windows of one text count together.
        """
        texts = self._in_sequences(lengths)
        tokens = self.long_texts.sizes(texts, self.room) + self._specials
        counts: Lengths = self.long_texts.counts(texts, self.room) * tokens
        return counts

    def whole_lengths(self, lengths: Sequence[Lengths]) -> Lengths:
        """Return the [n] lengths of the longest sequence of each row if nothing were cut."""
        longest: Lengths = self._in_sequences(lengths).max(axis=0) + self._specials
        return longest

    def is_cut(self, lengths: Sequence[Lengths]) -> NDArray[np.bool_]:
        """Return an [n] mask of the rows that lose tokens."""
        return self.long_texts.is_cut(self._in_sequences(lengths).max(axis=0), self.room)

    def _in_sequences(self, lengths: Sequence[Lengths]) -> Lengths:
        """Return [sequences, n] numbers of text tokens of each sequence of a row before any cut."""
        return np.stack([lengths[0] + lengths[1]] if self.reading in ("cross", "concat") else list(lengths))

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
        pieces = self.long_texts.pieces(ids, self.room)
        around = [part for piece in pieces for part in (self.template.before, piece, self.template.after)]
        return TokenSequence(_joined(*around), windows=len(pieces))

    def _pair(self, first: Ids, second: Ids) -> TokenSequence:
        n, m = longest_first(len(first), len(second), self.room)
        before, after = self.template.before, self.template.after
        ((first,), (second,)) = (self.long_texts.pieces(ids, room) for ids, room in ((first, n), (second, m)))
        if self.reading == "concat":
            return TokenSequence(_joined(before, first, second, after))
        sequence = _joined(before, first, self.template.between, second, after)
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
    lengths = tuple(len(each.ids) // each.windows for each in sequences for _ in range(each.windows))
    segments = np.zeros(len(ids), dtype=np.int64)
    for end, sequence in zip(np.cumsum([len(each.ids) for each in sequences]), sequences, strict=True):
        segments[end - sequence.of_second : end] = 1
    windows = tuple(each.windows for each in sequences)
    states = [each.states for each in sequences if each.states is not None]
    stored = len(states) == len(sequences)  # else all sequences of the pass start from their ids
    return Encoded(
        torch.from_numpy(ids),
        torch.from_numpy(segments),
        lengths,
        windows if max(windows) > 1 else None,
        torch.from_numpy(np.concatenate(states)) if stored else None,
        sequences[0].depth if stored else 0,
    )
