"""One batch from each task in every step."""

from math import ceil
from typing import Literal

from weft.schedules.base import Feed, Plan
from weft.schedules.streams import BatchStream
from weft.types import Part, Window
from weft.variants import Config


class BatchRoundRobin(Plan):
    """Every window holds `accumulate` batches of each task; an epoch ends when the shortest set has been seen once.

    The larger sets go on where they stopped in the last epoch, so that all of their rows are used in turn.
    """

    def __init__(self, feed: Feed) -> None:
        self.accumulate = feed.accumulate
        self.streams = [BatchStream(task, feed.sizes[task], feed.batch_sizes[task], feed.seed) for task in feed.sizes]
        self.rounds = min(stream.per_pass for stream in self.streams)
        """rounds in an epoch: batches of the shortest set"""
        self.per_epoch = ceil(self.rounds / feed.accumulate)
        self.steps = feed.epochs * self.per_epoch
        self.epoch_ends = tuple(self.per_epoch * (epoch + 1) for epoch in range(feed.epochs))

    def window(self, step: int) -> Window:
        epoch, at = divmod(step, self.per_epoch)
        first = at * self.accumulate
        last = min(first + self.accumulate, self.rounds)
        parts = tuple(
            Part(stream.task, micro, stream.batch(epoch * self.rounds + number))
            for micro, number in enumerate(range(first, last))
            for stream in self.streams
        )
        return Window(step, parts)


class BatchRoundRobinConfig(Config):
    name: Literal["batch-round-robin"] = "batch-round-robin"

    def build(self, feed: Feed) -> BatchRoundRobin:
        return BatchRoundRobin(feed)
