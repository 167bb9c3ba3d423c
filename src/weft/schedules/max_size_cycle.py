"""Round robin until the largest data set is exhausted; smaller data sets are repeated."""

from typing import Literal

from weft.schedules.base import Feed, ScheduleOptions, Segment
from weft.schedules.batch_round_robin import round_robin


class MaxSizeCycleConfig(ScheduleOptions):
    """Every round has a batch of each task; an epoch is one pass over the largest data set, by batches."""

    name: Literal["max-size-cycle"] = "max-size-cycle"

    def segments(self, feed: Feed) -> list[Segment]:
        streams = feed.streams(self.drop_last)
        return round_robin(streams, max(stream.per_pass for stream in streams), feed.epochs)
