"""The largest task alone first, then all tasks."""

from dataclasses import replace
from typing import Literal

from pydantic import Field

from weft.foundation.errors import UserError
from weft.schedules.base import Feed, ScheduleOptions, Segment
from weft.schedules.independent import whole_pass
from weft.schedules.sampled import SampledConfig


class StaggeredConfig(ScheduleOptions):
    """The first epochs are passes over one task only; the remaining epochs are `sampled`."""

    name: Literal["staggered"] = "staggered"
    first: str | None = None
    """Task of the first epochs. Defaults to the task with the most rows, with all tasks that read the same rows."""
    first_epochs: int = Field(default=2, ge=1)
    """Number of epochs of that task alone."""

    def segments(self, feed: Feed) -> list[Segment]:
        first = self.first or max(feed.sizes, key=feed.sizes.__getitem__)
        if self.first is not None and first not in feed.tasks:
            raise UserError(f"schedule.first: found {first!r}, expected one of {', '.join(feed.tasks)}")
        ahead = self.first_epochs * feed.times
        if ahead >= feed.epochs:
            raise UserError(
                f"schedule.first_epochs: found {ahead}, but the run has {feed.epochs} epochs in total; "
                "leave at least one for the other tasks"
            )
        stream = feed.stream(first, self.drop_last)
        alone = [whole_pass(stream, epoch, ends_epoch=True) for epoch in range(ahead)]
        rest = replace(feed, epochs=feed.epochs - ahead)
        return alone + SampledConfig(drop_last=self.drop_last).segments(rest)
