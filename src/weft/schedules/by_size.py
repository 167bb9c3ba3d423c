"""Random task sampling, with probabilities by data set size."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from weft.foundation.randomness import generator
from weft.schedules.base import Feed, Round, ScheduleOptions, Segment


class _BySizeOptions(ScheduleOptions):
    """Draws tasks by their size `n_i`: the number of batches in one pass over the task's rows."""

    rounds_per_epoch: int | None = Field(default=None, ge=1)
    """Forward passes per epoch. Defaults to the total number of batches of all data sets."""

    def draw(self, feed: Feed, exponent: Callable[[int], float]) -> list[Segment]:
        """Return epochs whose rounds are one batch of one task, drawn with `p_i ~ n_i ** exponent(epoch)`."""
        draws = _Draws(feed, exponent, self.drop_last, self.rounds_per_epoch)
        return [Segment(draws.rounds, partial(draws.round, epoch), ends_epoch=True) for epoch in range(feed.epochs)]


class ProportionalConfig(_BySizeOptions):
    """`p_i ~ n_i`: every data set gets the same expected number of passes, independent of its batch size."""

    name: Literal["proportional"] = "proportional"

    def segments(self, feed: Feed) -> list[Segment]:
        return self.draw(feed, lambda _: 1.0)


class SquareRootConfig(_BySizeOptions):
    """`p_i ~ sqrt(n_i)`: between proportional and uniform sampling."""

    name: Literal["square-root"] = "square-root"

    def segments(self, feed: Feed) -> list[Segment]:
        return self.draw(feed, lambda _: 0.5)


class AnnealedConfig(_BySizeOptions):
    """`p_i ~ n_i ^ alpha` with `alpha = 1 - 0.8 (e - 1) / (E - 1)`: proportional at first, nearly uniform at the end.

    Stickland and Murray, "BERT and PALs", 2019, who use row counts for n_i and one batch size for all tasks. With one
    epoch, alpha is 1.
    """

    name: Literal["annealed"] = "annealed"

    def segments(self, feed: Feed) -> list[Segment]:
        return self.draw(feed, lambda epoch: 1 - 0.8 * epoch / max(feed.epochs - 1, 1))


class _Draws:
    """The task of each round. Drawn one epoch at a time, so that a round is a function of its number only."""

    def __init__(self, feed: Feed, exponent: Callable[[int], float], drop_last: bool, rounds: int | None) -> None:
        self.feed = feed
        self.exponent = exponent
        self.streams = feed.streams(drop_last)
        self.rounds = rounds or sum(stream.per_pass for stream in self.streams)
        self._tasks = lru_cache(maxsize=2)(self._draw)
        self._before = lru_cache(maxsize=None)(self._count_before)

    def round(self, epoch: int, i: int) -> Round:
        tasks = self._tasks(epoch)
        stream = self.streams[tasks[i]]
        earlier = self._before(epoch)[tasks[i]] + int((tasks[:i] == tasks[i]).sum())
        return [(stream.source, stream.batch(earlier))]

    def _draw(self, epoch: int) -> NDArray[np.int64]:
        sizes = np.array([stream.per_pass for stream in self.streams], dtype=np.float64)
        weights = sizes ** self.exponent(epoch)
        chosen = generator(self.feed.seed, self.feed.phase, "tasks", epoch)
        return chosen.choice(len(sizes), size=self.rounds, p=weights / weights.sum())

    def _count_before(self, epoch: int) -> list[int]:
        """Return the number of batches of each task in all earlier epochs."""
        counts = np.zeros(len(self.streams), dtype=np.int64)
        for earlier in range(epoch):
            counts += np.bincount(self._draw(earlier), minlength=len(self.streams))
        return [int(count) for count in counts]
