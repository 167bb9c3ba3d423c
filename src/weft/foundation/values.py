"""Values that rooms exchange. t = tokens, n = sequences or rows, m = tasks, w = width of the body."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, islice

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
    windows: tuple[int, ...] | None = None
    """number of adjacent sequences that belong to each text; None if every text is one sequence"""
    states: Tensor | None = None
    """[t, w] stored outputs of the body's layer `depth`, which a pass starts from; None to start from the ids"""
    depth: int = 0
    """layer of the stored states: the number of layers that a pass skips"""

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

    @cached_property
    def by_text(self) -> "Encoded":
        """The sequences of each text as if they were its tokens: what pools token states then pools their vectors."""
        nothing = torch.zeros(len(self.lengths), dtype=self.ids.dtype, device=self.ids.device)
        return Encoded(nothing, nothing, self.windows or (1,) * len(self.lengths))

    @staticmethod
    def join(parts: Sequence["Encoded"]) -> "Encoded":
        """Concatenate all sequences of all parts, in order; ``hidden.split([len(p.ids) for p in parts])`` undoes it.

        The result is for the body, which does not ask which sequences are windows of one text. It has stored states
        if all parts have those of the same layer: all sequences of a pass start at one layer.
        """
        if len(parts) == 1:
            return parts[0]
        states = [part.states for part in parts if part.states is not None]
        stored = len(states) == len(parts) and len({part.depth for part in parts}) == 1
        return Encoded(
            ids=torch.cat([part.ids for part in parts]),
            segments=torch.cat([part.segments for part in parts]),
            lengths=tuple(length for part in parts for length in part.lengths),
            states=torch.cat(states) if stored else None,
            depth=parts[0].depth if stored else 0,
        )

    def only(self, tokens: Tensor, lengths: tuple[int, ...]) -> "Encoded":
        """Return some of the sequences, given by the indices of their tokens and by their lengths."""
        states = None if self.states is None else self.states[tokens]
        return Encoded(self.ids[tokens], self.segments[tokens], lengths, states=states, depth=self.depth)

    def to(self, device: torch.device) -> "Encoded":
        states = None if self.states is None else self.states.to(device)
        return replace(self, ids=self.ids.to(device), segments=self.segments.to(device), states=states)


Taken = slice | Tensor
"""which tokens of a pass belong to a text: one stretch, or their indices"""


@dataclass(frozen=True)
class DistinctTexts:
    """Texts of one or several batches, packed for one pass: a sequence that several tasks read is in it once.

    Equal sequences of one batch stay separate: they are different rows, each with its own dropout masks.
    """

    encoded: Encoded
    """the sequences of the pass, in order of first appearance"""
    places: tuple[Taken, ...] | None
    """the tokens of each text in `encoded`; None if no sequence is shared, so that the texts follow each other"""

    @staticmethod
    def of(batches: Sequence[tuple[Encoded, ...]], merge: bool = True) -> "DistinctTexts":
        """Join the texts of batches; sequences of different batches with equal ids and token types become one.

        `merge` is false if each batch needs states of its own.
        """
        texts = [text for batch in batches for text in batch]
        if not texts:
            nothing = torch.zeros(0, dtype=torch.int64)
            return DistinctTexts(Encoded(nothing, nothing, ()), None)
        joined = Encoded.join(texts)
        if len(batches) == 1 or not merge:
            return DistinctTexts(joined, None)
        numbers = _numbered(joined, [sum(len(text.lengths) for text in batch) for batch in batches])
        first = np.unique(numbers, return_index=True)[1]
        if len(first) == len(numbers):
            return DistinctTexts(joined, None)
        lengths = np.array(joined.lengths)
        starts = lengths.cumsum() - lengths
        keep = torch.from_numpy(_stretches(starts[first], lengths[first])).to(joined.ids.device)
        kept = joined.only(keep, tuple(lengths[first].tolist()))
        new_starts = (lengths[first].cumsum() - lengths[first])[numbers]
        ends = np.cumsum([len(text.lengths) for text in texts])
        places = [
            _taken(_stretches(new_starts[end - len(text.lengths) : end], np.array(text.lengths)), joined.ids.device)
            for text, end in zip(texts, ends, strict=True)
        ]
        return DistinctTexts(kept, tuple(places))

    def to(self, device: torch.device) -> "DistinctTexts":
        moved = [place.to(device) if isinstance(place, Tensor) else place for place in self.places or ()]
        return DistinctTexts(self.encoded.to(device), None if self.places is None else tuple(moved))


def _numbered(encoded: Encoded, batches: Sequence[int]) -> NDArray[np.int64]:
    """[n] number of each sequence among the distinct ones, counted in order of first appearance.

    `batches` are the numbers of sequences of each batch. The k-th copy in one batch equals the k-th copy in another.
    """
    tokens = torch.stack([encoded.ids, encoded.segments], dim=1).cpu().numpy()
    ends = np.cumsum(encoded.lengths).tolist()
    contents = iter([tokens[end - length : end].tobytes() for length, end in zip(encoded.lengths, ends, strict=True)])
    numbers: dict[tuple[bytes, int], int] = {}
    found = []
    for size in batches:
        copies: Counter[bytes] = Counter()
        for content in islice(contents, size):
            found.append(numbers.setdefault((content, copies[content]), len(numbers)))
            copies[content] += 1
    return np.array(found, dtype=np.int64)


def _stretches(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Indices of all tokens of some sequences, one sequence after the other."""
    before = lengths.cumsum() - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum())


def _taken(indices: NDArray[np.int64], device: torch.device) -> Taken:
    """A slice where the indices follow each other, which needs no copy of the states."""
    if (np.diff(indices) == 1).all():
        return slice(int(indices[0]), int(indices[-1]) + 1)
    return torch.from_numpy(indices).to(device)


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

    def total(self, values: Tensor) -> Tensor:
        """[n] sum over the words of each row, from values [u]"""
        return values.new_zeros(self.count).index_add(0, self.rows, values)

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
    """one entry, or two for a bi reading and one per hard negative; each has n texts"""
    target: Tensor
    """[n] class numbers or values, [n, labels] for multilabel, [n, texts] numbers of texts for matches, or [u] class
    numbers of words"""
    teacher: Tensor | None = None
    """[n, classes] probabilities or [n] numbers (on the training scale) that teachers predict; None without teachers"""
    labelled: Tensor | None = None
    """[n] 1 for rows with a label, 0 for rows with only teachers' predictions; None if all rows have a label"""
    words: Words | None = None
    """the words of all rows, if their labels are of words"""
    vectors: tuple[Tensor, ...] | None = None
    """[n, width] stored pooled vectors, in place of each of `texts`, which are then left out"""

    def to(self, device: torch.device) -> "Batch":
        texts = tuple(text.to(device) for text in self.texts)
        teacher, labelled = (None if one is None else one.to(device) for one in (self.teacher, self.labelled))
        words = None if self.words is None else self.words.to(device)
        vectors = None if self.vectors is None else tuple(own.to(device) for own in self.vectors)
        return Batch(self.task, self.rows, texts, self.target.to(device), teacher, labelled, words, vectors)


@dataclass(frozen=True)
class Part:
    """One task's rows in one forward pass of a window."""

    task: str
    micro: int
    """index of the forward pass in the window; 0 without gradient accumulation"""
    rows: Rows
    """row numbers in the task's set"""
    source: str = ""
    """name of the source that the rows were drawn from; empty for a part that no schedule made"""
    drawn: Rows | None = None
    """[n] place of each row in the batch that was drawn from the source; places of rows that the task does not ask
    about are left out. Defaults to 0, 1, ..."""

    @property
    def places(self) -> Rows:
        """`drawn`, with its default filled in"""
        return np.arange(len(self.rows)) if self.drawn is None else self.drawn

    def only(self, chosen: NDArray[np.bool_]) -> "Part":
        """Return a part with some of the rows; `chosen` is a mask [n]."""
        return Part(self.task, self.micro, self.rows[chosen], self.source, self.places[chosen])


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

    def rows_of(self, task: str, micro: int) -> int:
        """Number of rows of a task in one forward pass."""
        return sum(len(part.rows) for part in self.parts if (part.task, part.micro) == (task, micro))

    def count(self, task: str) -> int:
        """Number of rows of a task in the whole window."""
        return sum(len(part.rows) for part in self.parts if part.task == task)
