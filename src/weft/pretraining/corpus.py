"""The texts to pretrain on: tokenized once, deduplicated, cut to sequences, a part held out."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.data.long_texts.base import Ids
from weft.data.readings import TokenSequence, pack
from weft.data.template import Template
from weft.data.tokens import TokenizedFile
from weft.foundation.errors import UserError
from weft.foundation.randomness import generator
from weft.foundation.values import Encoded, Rows

MOST_HELD_OUT = 1000
"""maximum number of sequences that the dev loss is measured on"""


@dataclass(frozen=True)
class TextColumn:
    """One column of texts."""

    file: TokenizedFile
    column: str
    rows: Rows
    """row numbers in the file"""


class Corpus:
    """Sequences of texts, without repeats. A text longer than a sequence becomes several."""

    def __init__(self, columns: Sequence[TextColumn], template: Template, max_length: int) -> None:
        self.columns = columns
        self.template = template
        self.room = max_length - template.around_one
        """tokens of text in a sequence"""
        found: list[tuple[int, int, int]] = []
        seen: set[bytes] = set()
        for number, own in enumerate(columns):
            for row in own.rows.tolist():
                ids = own.file.ids(own.column, row)
                for start in range(0, len(ids), self.room):
                    key = hashlib.blake2b(ids[start : start + self.room].tobytes(), digest_size=16).digest()
                    if key not in seen:
                        seen.add(key)
                        found.append((number, row, start))
        self.places = np.array(found, dtype=np.int64).reshape(-1, 3)
        """[n] column, row and first token of each sequence"""
        if len(self) < 2:
            raise UserError(f"the texts make {len(self)} different sequences; expected at least 2")

    def __len__(self) -> int:
        return len(self.places)

    def split(self, fraction: float, seed: int) -> tuple[Rows, Rows]:
        """Return the sequences to train on and those held out."""
        order = generator(seed, "pretraining", "held out").permutation(len(self))
        held_out = min(max(1, round(fraction * len(self))), MOST_HELD_OUT)
        return np.sort(order[held_out:]), np.sort(order[:held_out])

    def encoded(self, numbers: Rows) -> Encoded:
        """Return sequences end to end, in order of length."""
        return pack(sorted((self._sequence(int(number)) for number in numbers), key=lambda one: len(one.ids)))

    def _sequence(self, number: int) -> TokenSequence:
        column, row, start = self.places[number].tolist()
        own = self.columns[column]
        ids: Ids = own.file.ids(own.column, row)[start : start + self.room]
        return TokenSequence(np.concatenate([self.template.before, ids, self.template.after]).astype(np.int64))
