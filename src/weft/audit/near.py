"""Near duplicates by MinHash with locality-sensitive hashing (Broder, 1997).

A text is the set of its character 5-grams. MinHash signatures agree in a position with a probability equal to the
Jaccard similarity of the sets. Signatures are cut into bands; two texts that agree in a whole band are candidates. A
candidate counts only if the exact Jaccard similarity reaches the threshold, so that hashing can miss a pair but
never invents one: with 20 bands of 6, a pair with similarity 0.8 is missed with a probability of 0.002.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from weft.foundation.randomness import generator

THRESHOLD = 0.8
GRAM = 5
BANDS, BAND = 20, 6
WHOLE = 40
"""All pairs of a bucket of at most this many texts are compared; of a larger one, neighbours only."""

Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class NearPair:
    """Two texts that are nearly equal: their numbers, the smaller one first."""

    first: int
    second: int
    similarity: float


def near_pairs(texts: Sequence[str], seed: int, threshold: float = THRESHOLD) -> list[NearPair]:
    """Return the pairs of distinct texts with a Jaccard similarity of at least `threshold`, in order."""
    draw = generator(seed, "near duplicates")
    factors = draw.integers(0, 2**64, BANDS * BAND, dtype=np.uint64) | np.uint64(1)
    offsets = draw.integers(0, 2**64, BANDS * BAND, dtype=np.uint64)
    signatures = np.empty((len(texts), BANDS * BAND), dtype=np.uint64)
    for number, text in enumerate(texts):
        signatures[number] = (grams(text)[:, None] * factors + offsets).min(axis=0)
    found = []
    for first, second in sorted(_candidates(signatures)):
        similarity = jaccard(grams(texts[first]), grams(texts[second]))
        if similarity >= threshold:
            found.append(NearPair(first, second, similarity))
    return found


def grams(text: str) -> Hashes:
    """Return the sorted distinct 64-bit hashes of a text's character n-grams; a shorter text is one n-gram."""
    codes = np.frombuffer(text.ljust(GRAM).encode("utf-32-le"), dtype=np.uint32).astype(np.uint64)
    hashes = np.zeros(len(codes) - GRAM + 1, dtype=np.uint64)
    for place in range(GRAM):
        hashes = _mixed(hashes ^ codes[place : place + len(hashes)])
    return np.unique(hashes)


def jaccard(one: Hashes, two: Hashes) -> float:
    """Return the size of the intersection of two sets, divided by the size of their union."""
    shared = len(np.intersect1d(one, two, assume_unique=True))
    return shared / (len(one) + len(two) - shared)


def _mixed(values: Hashes) -> Hashes:
    """SplitMix64 (Steele et al., 2014): every bit of the input affects every bit of the output."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _candidates(signatures: Hashes) -> set[tuple[int, int]]:
    """Return the pairs of texts that agree in at least one band."""
    found: set[tuple[int, int]] = set()
    for start in range(0, BANDS * BAND, BAND):
        keys = np.zeros(len(signatures), dtype=np.uint64)
        for column in signatures[:, start : start + BAND].T:
            keys = _mixed(keys ^ column)
        for bucket in _buckets(keys):
            found.update(combinations(bucket, 2) if len(bucket) <= WHOLE else pairwise(bucket))
    return found


def _buckets(keys: Hashes) -> Iterator[list[int]]:
    """Yield the numbers of all texts with equal keys, in order, if there is more than one."""
    order = np.argsort(keys, kind="stable")
    for bucket in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1):
        if len(bucket) > 1:
            yield bucket.tolist()
