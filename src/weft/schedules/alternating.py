"""One batch of one task in every step; the tasks take turns."""

from functools import partial
from typing import Literal

from weft.schedules.base import Feed, Round, ScheduleOptions, Segment
from weft.schedules.streams import BatchStream


class AlternatingConfig(ScheduleOptions):
    """The batches of `batch-round-robin`, each in a step of its own.

    AdamW's step has about the same length for one task as for many, so in a step that m unlike tasks share, each moves
    the body by about 1 / sqrt(m) of what it would alone. Here every task has as many steps as if it trained alone.
    """

    name: Literal["alternating"] = "alternating"

    def segments(self, feed: Feed) -> list[Segment]:
        streams = feed.streams(self.drop_last)
        turns = min(stream.per_pass for stream in streams)
        rounds = turns * len(streams)
        return [
            Segment(rounds, partial(_turn, streams, epoch * turns), ends_epoch=True) for epoch in range(feed.epochs)
        ]


def _turn(streams: list[BatchStream], start: int, i: int) -> Round:
    """Return the batch of round `i`, after `start` batches of every stream."""
    turn, place = divmod(i, len(streams))
    stream = streams[place]
    return [(stream.source, stream.batch(start + turn))]
