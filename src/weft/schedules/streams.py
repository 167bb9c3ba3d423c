"""Batches of one task by their number, shuffled from seeds alone."""

from functools import lru_cache
from math import ceil

from weft.foundation.randomness import generator
from weft.foundation.values import Rows

Seeds = tuple[int, int]
"""(the recipe's seed, the number of the phase)"""


def batches_in(rows: int, batch_size: int, drop_last: bool) -> int:
    """How many batches so many rows make; a set smaller than one batch is one batch."""
    return max(1, rows // batch_size) if drop_last else ceil(rows / batch_size)


class BatchStream:
    """Pass after pass over a set, each in its own order; batch number k is known without the ones before it."""

    def __init__(self, task: str, size: int, batch_size: int, drop_last: bool, seeds: Seeds) -> None:
        self.task = task
        self.size = size
        self.batch_size = batch_size
        self.per_pass = batches_in(size, batch_size, drop_last)
        """batches in one pass; the last one may be short unless dropped"""
        self.seeds = seeds
        self._order = lru_cache(maxsize=2)(self._permutation)

    def batch(self, number: int) -> Rows:
        done, at = divmod(number, self.per_pass)
        return self._order(done)[at * self.batch_size : (at + 1) * self.batch_size]

    def _permutation(self, done: int) -> Rows:
        seed, phase = self.seeds
        return generator(seed, phase, self.task, "order", done).permutation(self.size)


class SampleStream:
    """A part of a set for each epoch, in shuffled batches: the same part each time, or another one."""

    def __init__(
        self, task: str, size: int, take: int, batch_size: int, drop_last: bool, draw: str, seeds: Seeds
    ) -> None:
        self.task = task
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
        part = generator(seed, phase, self.task, "sample", drawn).permutation(self.size)[: self.take]
        return generator(seed, phase, self.task, "order", epoch).permutation(part)
