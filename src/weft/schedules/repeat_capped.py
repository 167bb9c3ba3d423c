"""Round robin until the largest set is used up; the small ones are repeated a limited number of times."""

from functools import partial
from typing import Literal

from pydantic import Field

from weft.schedules.base import Feed, Round, ScheduleOptions, Segment
from weft.schedules.streams import BatchStream


class RepeatCappedConfig(ScheduleOptions):
    """`max-size-cycle`, but a set that has been seen `repeats` times in an epoch leaves; the others go on alone."""

    name: Literal["repeat-capped"] = "repeat-capped"
    repeats: int = Field(default=5, ge=1)
    """how often a set is seen in an epoch at most"""

    def segments(self, feed: Feed) -> list[Segment]:
        streams = feed.streams(self.drop_last)
        rounds = max(stream.per_pass for stream in streams)
        turns = [(stream, min(rounds, self.repeats * stream.per_pass)) for stream in streams]
        return [Segment(rounds, partial(_round, turns, epoch), ends_epoch=True) for epoch in range(feed.epochs)]


def _round(turns: list[tuple[BatchStream, int]], epoch: int, i: int) -> Round:
    return [(stream.task, stream.batch(epoch * most + i)) for stream, most in turns if i < most]
