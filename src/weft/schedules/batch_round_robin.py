"""One batch from each task in every step."""

from functools import partial
from typing import Literal

from weft.schedules.base import Feed, Round, ScheduleOptions, Segment
from weft.schedules.streams import BatchStream


class BatchRoundRobinConfig(ScheduleOptions):
    """Every round has a batch of each task; an epoch is one pass over the smallest data set, by batches.

    Larger data sets continue in the next epoch where the last one ended, so that all of their rows are used.
    """

    name: Literal["batch-round-robin"] = "batch-round-robin"

    def segments(self, feed: Feed) -> list[Segment]:
        streams = feed.streams(self.drop_last)
        return round_robin(streams, min(stream.per_pass for stream in streams), feed.epochs)


def round_robin(streams: list[BatchStream], rounds: int, epochs: int) -> list[Segment]:
    """Return epochs of `rounds` rounds with one batch of every stream; streams continue across epochs."""
    return [Segment(rounds, partial(_one_of_each, streams, epoch * rounds), ends_epoch=True) for epoch in range(epochs)]


def _one_of_each(streams: list[BatchStream], start: int, i: int) -> Round:
    """Return batch number `start + i` of every stream."""
    return [(stream.source, stream.batch(start + i)) for stream in streams]
