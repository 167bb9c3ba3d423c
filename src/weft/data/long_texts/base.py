"""Base class of the ways to read a text that is longer than a sequence."""

from abc import abstractmethod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from weft.foundation.config import Config

Ids = NDArray[np.int32]
Lengths = NDArray[np.int64]
WindowPooling = Literal["mean", "max", "attention"]


class LongTextsOptions(Config):
    """Base class of all variants. `room` is the number of tokens that a sequence has for the text."""

    @abstractmethod
    def pieces(self, ids: Ids, room: int) -> list[Ids]:
        """Return the tokens of each sequence of a text: the whole text if it fits, else sequences of at most `room`."""

    def counts(self, lengths: Lengths, room: int) -> Lengths:  # noqa: ARG002
        """Return the [n] numbers of sequences of texts with these lengths."""
        return np.ones_like(lengths)

    def sizes(self, lengths: Lengths, room: int) -> Lengths:
        """Return the [n] numbers of text tokens in each sequence of a text."""
        return np.minimum(lengths, room)

    def is_cut(self, lengths: Lengths, room: int) -> NDArray[np.bool_]:
        """Return an [n] mask of the texts that lose tokens."""
        return np.asarray(lengths > room)

    @property
    @abstractmethod
    def in_words(self) -> str:
        """What is read of a longer text, for the model card and the remarks of an export."""

    @property
    def pooled_by(self) -> WindowPooling:
        """How the vectors of a text's sequences become one vector. The mean of one vector is the vector itself."""
        return "mean"

    @property
    def one_sequence(self) -> bool:
        """Whether every text is one sequence."""
        return True
