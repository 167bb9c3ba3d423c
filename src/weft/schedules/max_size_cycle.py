"""Round robin until the largest set is used up; the small ones are cycled."""

from typing import Literal

from weft.schedules.base import Feed, ScheduleOptions, Segment
from weft.schedules.batch_round_robin import round_robin


class MaxSizeCycleConfig(ScheduleOptions):
    """Every round has a batch of each task; an epoch ends when the largest set, by batches, has been seen once."""

    name: Literal["max-size-cycle"] = "max-size-cycle"

    def segments(self, feed: Feed) -> list[Segment]:
        streams = feed.streams(self.drop_last)
        return round_robin(streams, max(stream.per_pass for stream in streams), feed.epochs)
