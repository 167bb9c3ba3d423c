"""Split of a train file into train and dev rows, without the same text in both."""

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
    """Return the train and dev rows, in file order.

    `texts` contains the texts of each text column. Rows that share a text, in any column and ignoring case, form a
    group. Groups are assigned to dev as a whole, in an order drawn from the seed, until dev has its share. Tasks with
    the same texts get the same split, so that no task trains on texts on which another task is evaluated.
    """
    first = _first_connected(first_equal(text_keys(chain.from_iterable(texts))), len(texts))
    is_first = first == np.arange(len(first))
    sizes = np.bincount(first, minlength=len(first))[is_first]
    wanted = max(round(fraction * len(first)), 1)
    chosen = np.zeros(len(sizes), dtype=bool)
    taken = 0
    for number in generator(seed, "dev split").permutation(len(sizes)):
        # A group that exceeds the dev size stays in train, so that one very frequent text cannot fill dev.
        if taken + sizes[number] <= wanted:
            taken += sizes[number]
            chosen[number] = True
    groups = np.cumsum(is_first, dtype=np.int32) - 1
    held = chosen[groups[first]]
    return np.flatnonzero(~held), np.flatnonzero(held)


def _first_connected(owners: Numbers, columns: int) -> Numbers:
    """Return the [n] first rows of the connected groups. `owners` is the index of the first occurrence of each text.

    Uses arrays only, because there may be many rows.
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


def first_equal(keys: Keys) -> Numbers:
    """Return the [n] indices of the first occurrence of each key."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    is_new = np.append(True, ordered[1:] != ordered[:-1])
    del ordered  # free the memory for the next steps
    start = np.maximum.accumulate(np.where(is_new, np.arange(len(order), dtype=np.int32), 0))
    found = np.empty(len(order), dtype=np.int32)
    found[order] = order[start]
    return found


def text_keys(texts: Iterable[str]) -> Keys:
    """Return [n] 64-bit keys of texts. Texts that differ only in case or whitespace have equal keys."""
    return np.fromiter((_key(fold(text)) for text in texts), dtype=np.uint64)


def pair_keys(pairs: Iterable[Sequence[str]]) -> Keys:
    """Return [n] 64-bit keys of the texts of each row, independent of their order."""
    return np.fromiter((_key("\x1f".join(sorted(map(fold, texts)))) for texts in pairs), dtype=np.uint64)


def _key(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def fold(text: str) -> str:
    """Normalize case and whitespace, so that texts that differ only in these are equal."""
    return " ".join(text.casefold().split())
