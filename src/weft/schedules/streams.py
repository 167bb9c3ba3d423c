"""An endless, shuffled stream of one task's batches."""

from functools import lru_cache
from math import ceil

from weft.randomness import generator
from weft.types import Rows


class BatchStream:
    """Pass after pass over a set, each in its own order; batch number k is known without the ones before it."""

    def __init__(self, task: str, size: int, batch_size: int, seed: int) -> None:
        self.task = task
        self.size = size
        self.batch_size = batch_size
        self.per_pass = ceil(size / batch_size)
        """batches in one pass; the last one may be short, so that every row is seen once"""
        self.seed = seed
        self._order = lru_cache(maxsize=2)(self._permutation)

    def batch(self, number: int) -> Rows:
        done, at = divmod(number, self.per_pass)
        return self._order(done)[at * self.batch_size : (at + 1) * self.batch_size]

    def _permutation(self, done: int) -> Rows:
        return generator(self.seed, self.task, "order", done).permutation(self.size)
