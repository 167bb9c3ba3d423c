"""All epochs of one task, then all epochs of the next."""

from typing import Literal

from weft.foundation.errors import UserError
from weft.schedules.base import Feed, ScheduleOptions, Segment
from weft.schedules.independent import whole_pass


class SequentialConfig(ScheduleOptions):
    """Each task gets all of its epochs before the next one begins. Every pass over a set counts as an epoch.

    The order is the recipe's unless said. The last task is remembered best: that is forgetting, and this schedule
    is here to measure it.
    """

    name: Literal["sequential"] = "sequential"
    order: tuple[str, ...] | None = None
    """the tasks in the order in which they are trained"""

    def segments(self, feed: Feed) -> list[Segment]:
        order = self.order or tuple(feed.sizes)
        if sorted(order) != sorted(feed.sizes):
            raise UserError(f"schedule.order: found {', '.join(order)}, expected each of {', '.join(feed.sizes)} once")
        streams = [feed.stream(task, self.drop_last) for task in order]
        return [whole_pass(stream, epoch, ends_epoch=True) for stream in streams for epoch in range(feed.epochs)]
