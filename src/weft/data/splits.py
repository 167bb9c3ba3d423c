"""Sets part of a train file aside for measuring, without letting the same text stand on both sides."""

import hashlib
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from weft.foundation.randomness import generator
from weft.foundation.values import Rows

Keys = NDArray[np.uint64]
Numbers = NDArray[np.int32]


def split_rows(texts: Sequence[Iterable[str]], fraction: float, seed: int) -> tuple[Rows, Rows]:
    """Row numbers for training and for dev, in file order.

    `texts` gives the texts of each text column. Rows that share a text, in either column and in any case, are
    connected; connected rows are dealt out together, in an order drawn from the seed, until dev has its share. Tasks
    on the same texts get the same split, so that none trains on what another is measured on.
    """
    first = _first_connected(_first_equal(text_keys(chain.from_iterable(texts))), len(texts))
    is_first = first == np.arange(len(first))
    sizes = np.bincount(first, minlength=len(first))[is_first]
    wanted = max(round(fraction * len(first)), 1)
    chosen = np.zeros(len(sizes), dtype=bool)
    taken = 0
    for number in generator(seed, "dev split").permutation(len(sizes)):
        # A group that would overshoot is left to train, so that one text that fills the file cannot fill dev.
        if taken + sizes[number] <= wanted:
            taken += sizes[number]
            chosen[number] = True
    groups = np.cumsum(is_first, dtype=np.int32) - 1
    held = chosen[groups[first]]
    return np.flatnonzero(~held), np.flatnonzero(held)


def _first_connected(owners: Numbers, columns: int) -> Numbers:
    """[n] for each row the first of those that it is linked with; `owners` says where each text stands first.

    Rows may be many: arrays alone.
    """
    count = len(owners) // columns
    by_column = np.split(owners % count, columns)
    first = np.arange(count, dtype=np.int32)
    while True:
        for owner in by_column:
            theirs = first[owner]
            np.minimum.at(first, np.maximum(first, theirs), np.minimum(first, theirs))
            while not np.array_equal(first, shorter := first[first]):
                first = shorter
        if all(np.array_equal(first, first[owner]) for owner in by_column):
            return first


def _first_equal(keys: Keys) -> Numbers:
    """[n] where each key stands first."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    is_new = np.append(True, ordered[1:] != ordered[:-1])
    del ordered  # what follows needs the room
    start = np.maximum.accumulate(np.where(is_new, np.arange(len(order), dtype=np.int32), 0))
    found = np.empty(len(order), dtype=np.int32)
    found[order] = order[start]
    return found


def text_keys(texts: Iterable[str]) -> Keys:
    """[n] 64 bits for each text; equal ones, in any case, have equal keys."""
    return np.fromiter((_key(fold(text)) for text in texts), dtype=np.uint64)


def pair_keys(pairs: Iterable[Sequence[str]]) -> Keys:
    """The same for the texts of a row, in either order."""
    return np.fromiter((_key("\x1f".join(sorted(map(fold, texts)))) for texts in pairs), dtype=np.uint64)


def _key(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def fold(text: str) -> str:
    """Texts that differ in case and blanks alone count as equal."""
    return " ".join(text.casefold().split())
