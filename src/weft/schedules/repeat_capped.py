"""Round robin until the largest data set is exhausted; smaller data sets are repeated a limited number of times."""

from functools import partial
from typing import Literal

from pydantic import Field

from weft.schedules.base import Feed, Round, ScheduleOptions, Segment
from weft.schedules.streams import BatchStream


class RepeatCappedConfig(ScheduleOptions):
    """`max-size-cycle`, but a data set is left out of further rounds after `repeats` passes in an epoch."""

    name: Literal["repeat-capped"] = "repeat-capped"
    repeats: int = Field(default=5, ge=1)
    """Maximum number of passes over a data set per epoch."""

    def segments(self, feed: Feed) -> list[Segment]:
        streams = feed.streams(self.drop_last)
        rounds = max(stream.per_pass for stream in streams)
        turns = [(stream, min(rounds, self.repeats * stream.per_pass)) for stream in streams]
        return [Segment(rounds, partial(_round, turns, epoch), ends_epoch=True) for epoch in range(feed.epochs)]


def _round(turns: list[tuple[BatchStream, int]], epoch: int, i: int) -> Round:
    return [(stream.source, stream.batch(epoch * most + i)) for stream, most in turns if i < most]
