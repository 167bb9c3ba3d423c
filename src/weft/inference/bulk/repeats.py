"""Texts that occur in several shards of a file: found in the first scan, so that they can be encoded first, once."""

import hashlib
from array import array
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

SCANNED = 4 << 20
"""number of texts that are compared, from the beginning of a file: 8 bytes of memory each"""
MOST = 32_768
"""maximum number of rows that are encoded first; those whose texts occur most often are chosen"""


class TextUnit(NamedTuple):
    """What is encoded as one sequence of a row."""

    reader: int
    """number of the tasks that read it: engines may encode a text for each of them"""
    columns: tuple[str, ...]


class ShardRepeats:
    """Collects digests of texts row by row. Equal digests of different texts cost time only."""

    def __init__(self, units: Sequence[TextUnit], shard_rows: int) -> None:
        """`units` are those of each row. Inside a shard equal texts are encoded once anyway."""
        self.units = units
        self.shard_rows = shard_rows
        self._digests = array("Q")

    def see(self, values: Mapping[str, str]) -> None:
        """Add a row."""
        if len(self._digests) < SCANNED:
            for unit in self.units:
                text = "\0".join([str(unit.reader), *(values[name] for name in unit.columns)])
                digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
                self._digests.append(int.from_bytes(digest, "little"))

    def rows(self) -> tuple[int, ...]:
        """Return the first row of each text that occurs in several shards, in order."""
        digests = np.frombuffer(self._digests, dtype=np.uint64)
        rows = np.arange(len(digests)) // len(self.units)
        _, first, owner, counts = np.unique(digests, return_index=True, return_inverse=True, return_counts=True)
        last = np.zeros(len(first), dtype=np.int64)
        np.maximum.at(last, owner, rows)
        crosses = rows[first] // self.shard_rows != last // self.shard_rows
        saved = np.zeros(len(digests) // len(self.units), dtype=np.int64)
        np.add.at(saved, rows[first[crosses]], counts[crosses])
        found = np.flatnonzero(saved)
        if len(found) > MOST:
            found = np.sort(found[np.argsort(-saved[found], kind="stable")[:MOST]])
        return tuple(found.tolist())
