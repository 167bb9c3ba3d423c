"""One pass over each data set per epoch, one after the other."""

from functools import partial
from typing import Literal

from weft.schedules.base import Feed, Round, ScheduleOptions, Segment
from weft.schedules.streams import BatchStream


class IndependentConfig(ScheduleOptions):
    """In every epoch, a pass over the first data set, then over the second, and so on."""

    name: Literal["independent"] = "independent"

    def segments(self, feed: Feed) -> list[Segment]:
        streams = feed.streams(self.drop_last)
        return [
            whole_pass(stream, epoch, ends_epoch=stream is streams[-1])
            for epoch in range(feed.epochs)
            for stream in streams
        ]


def whole_pass(stream: BatchStream, number: int, *, ends_epoch: bool) -> Segment:
    """Return pass number `number` over one data set as a segment."""
    return Segment(stream.per_pass, partial(_alone, stream, number * stream.per_pass), ends_epoch)


def _alone(stream: BatchStream, start: int, i: int) -> Round:
    return [(stream.source, stream.batch(start + i))]
