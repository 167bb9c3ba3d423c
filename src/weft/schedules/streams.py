"""Shuffled batches of one source; a batch is a function of its number and the seeds."""

from functools import lru_cache
from math import ceil

from weft.foundation.randomness import generator
from weft.foundation.values import Rows

Seeds = tuple[int, int]
"""(the recipe's seed, the number of the phase)"""


def batches_in(rows: int, batch_size: int, drop_last: bool) -> int:
    """Return the number of batches of a data set; a data set smaller than one batch has one batch."""
    return max(1, rows // batch_size) if drop_last else ceil(rows / batch_size)


class BatchStream:
    """Repeated passes over a data set, each shuffled differently. Random access: batch k needs no earlier batch."""

    def __init__(self, source: str, size: int, batch_size: int, drop_last: bool, seeds: Seeds) -> None:
        self.source = source
        self.size = size
        self.batch_size = batch_size
        self.per_pass = batches_in(size, batch_size, drop_last)
        """batches in one pass; the last batch can be incomplete unless dropped"""
        self.seeds = seeds
        self._order = lru_cache(maxsize=2)(self._permutation)

    def batch(self, number: int) -> Rows:
        done, at = divmod(number, self.per_pass)
        return self._order(done)[at * self.batch_size : (at + 1) * self.batch_size]

    def _permutation(self, done: int) -> Rows:
        seed, phase = self.seeds
        return generator(seed, phase, self.source, "order", done).permutation(self.size)


class SampleStream:
    """A sample of a data set per epoch, in shuffled batches: drawn once, or in each epoch."""

    def __init__(
        self, source: str, size: int, take: int, batch_size: int, drop_last: bool, draw: str, seeds: Seeds
    ) -> None:
        self.source = source
        self.size = size
        self.take = take
        self.batch_size = batch_size
        self.per_epoch = batches_in(take, batch_size, drop_last)
        self.draw = draw
        self.seeds = seeds
        self._order = lru_cache(maxsize=2)(self._shuffled)

    def batch(self, epoch: int, number: int) -> Rows:
        return self._order(epoch)[number * self.batch_size : (number + 1) * self.batch_size]

    def _shuffled(self, epoch: int) -> Rows:
        seed, phase = self.seeds
        drawn = 0 if self.draw == "once" else epoch
        part = generator(seed, phase, self.source, "sample", drawn).permutation(self.size)[: self.take]
        return generator(seed, phase, self.source, "order", epoch).permutation(part)
