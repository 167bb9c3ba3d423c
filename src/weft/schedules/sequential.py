"""All epochs of one task, followed by all epochs of the next."""

from typing import Literal

from weft.foundation.errors import UserError
from weft.schedules.base import Feed, ScheduleOptions, Segment
from weft.schedules.independent import whole_pass


class SequentialConfig(ScheduleOptions):
    """All epochs of a task before the next task starts. Every pass over a data set counts as an epoch.

    Use it to measure catastrophic forgetting: earlier tasks lose accuracy while later tasks train.
    """

    name: Literal["sequential"] = "sequential"
    order: tuple[str, ...] | None = None
    """Tasks in training order. Defaults to the order in the recipe."""

    def segments(self, feed: Feed) -> list[Segment]:
        order = self.order or tuple(feed.sizes)
        if sorted(order) != sorted(feed.sizes):
            raise UserError(f"schedule.order: found {', '.join(order)}, expected each of {', '.join(feed.sizes)} once")
        streams = [feed.stream(task, self.drop_last) for task in order]
        return [whole_pass(stream, epoch, ends_epoch=True) for stream in streams for epoch in range(feed.epochs)]
