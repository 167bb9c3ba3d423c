"""Predictions for words, from the outputs of all tokens of each sequence."""

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft.data.readings import TokenSequence
from weft.foundation.errors import UserError
from weft.foundation.values import Words
from weft.kinds.tags import objects

Read = Callable[[Tensor, Words], Tensor]
"""outputs [u, k] of words -> [u, 2] predicted class and its probability"""
UNSEEN = (0.0, 0.0)
"""class and probability of a word that the model did not see: outside, and no evidence for it"""


def seen_words(rows: Sequence[TokenSequence], device: torch.device) -> Words:
    """Return the words of rows that have a token."""
    positions = [_seen(row) for row in rows]
    counts = torch.tensor([len(own) for own in positions])
    owners = torch.repeat_interleave(torch.arange(len(rows)), counts)
    return Words(owners, torch.from_numpy(np.concatenate(positions)), len(rows)).to(device)


def _seen(row: TokenSequence) -> NDArray[np.int64]:
    assert row.words is not None, "the reader of such a task finds the words"
    places = row.words[:, 2]
    return places[places >= 0]


def word_outputs(outputs: Sequence[Tensor], words: Words) -> Tensor:
    """[u, k] outputs of words, from those [l, k] of all tokens of each row's sequence"""
    each = words.positions.split(words.lengths.tolist())
    return torch.cat([own[positions] for own, positions in zip(outputs, each, strict=True)])


def word_answers(rows: Sequence[TokenSequence], outputs: Sequence[Tensor], read: Read) -> NDArray[np.float64]:
    """[n] predictions of rows, given the outputs [l, k] of all tokens of each row's sequence"""
    words = seen_words(rows, outputs[0].device)
    return placed(rows, read(word_outputs(outputs, words), words), words)


def most_probable(probabilities: Tensor, _: Words) -> Tensor:
    """[u, 2] the most probable class and its probability"""
    best = probabilities.max(dim=1)
    return torch.stack([best.indices.to(best.values.dtype), best.values], dim=1)


def no_vector(task: str) -> UserError:
    """Return the error for an embedding by a task that has vectors of words only."""
    return UserError(
        f"task {task!r} has a vector for each word and none for a text; choose another task for embeddings"
    )


def placed(rows: Sequence[TokenSequence], read: Tensor, words: Words) -> NDArray[np.float64]:
    """[n] arrays [words, 4] of each row: character range, predicted class and its probability."""
    found = []
    for row, own in zip(rows, read.double().cpu().split(words.lengths.tolist()), strict=True):
        assert row.words is not None, "the reader of such a task finds the words"
        table = np.empty((len(row.words), 4))
        table[:, :2] = row.words[:, :2]
        table[:, 2:] = UNSEEN
        table[row.words[:, 2] >= 0, 2:] = own.numpy()
        found.append(table)
    return cast(NDArray[np.float64], objects(found))
