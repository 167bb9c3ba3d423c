"""Tasks alternate, one epoch each."""

from typing import Literal

from weft.schedules.base import Feed, ScheduleOptions, Segment
from weft.schedules.independent import whole_pass


class EpochRoundRobinConfig(ScheduleOptions):
    """One epoch of the first task, one of the second, and so on, repeated `epochs` times.

    The same steps as `independent`, but every pass over a data set counts as an epoch: scores are measured after each
    pass, which shows how they change as the tasks alternate.
    """

    name: Literal["epoch-round-robin"] = "epoch-round-robin"

    def segments(self, feed: Feed) -> list[Segment]:
        streams = feed.streams(self.drop_last)
        return [whole_pass(stream, turn, ends_epoch=True) for turn in range(feed.epochs) for stream in streams]
