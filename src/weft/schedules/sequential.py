"""All epochs of one task, followed by all epochs of the next."""

from itertools import groupby
from typing import Literal

from weft.foundation.errors import UserError
from weft.schedules.base import Feed, ScheduleOptions, Segment
from weft.schedules.independent import whole_pass


class SequentialConfig(ScheduleOptions):
    """All epochs of a task before the next task starts. Every pass over a data set counts as an epoch.

    Tasks that read the same rows have their turn together.

    Use it to measure catastrophic forgetting: earlier tasks lose accuracy while later tasks train.
    """

    name: Literal["sequential"] = "sequential"
    order: tuple[str, ...] | None = None
    """Tasks in training order. Defaults to the order in the recipe."""

    def segments(self, feed: Feed) -> list[Segment]:
        source_of = feed.tasks
        order = self.order or tuple(source_of)
        if sorted(order) != sorted(source_of):
            raise UserError(f"schedule.order: found {', '.join(order)}, expected each of {', '.join(source_of)} once")
        turns = [name for name, _ in groupby(order, key=source_of.__getitem__)]
        for name in turns:
            if turns.count(name) > 1:
                both = " and ".join(feed.askers[name])
                raise UserError(
                    f"schedule.order: {both} read the same rows and train together; name them one after the other"
                )
        streams = [feed.stream(name, self.drop_last) for name in turns]
        return [whole_pass(stream, epoch, ends_epoch=True) for stream in streams for epoch in range(feed.epochs)]
