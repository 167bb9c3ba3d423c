"""Every data set subsampled to the size of the smallest, one pass over each per epoch."""

from functools import partial
from typing import Literal

from pydantic import Field

from weft.schedules.base import Feed, Round, ScheduleOptions, Segment
from weft.schedules.streams import SampleStream


class CappedConfig(ScheduleOptions):
    """`independent` on samples: at most `cap` rows of each data set per epoch."""

    name: Literal["capped"] = "capped"
    cap: int | None = Field(default=None, ge=1)
    """Maximum rows of each data set per epoch. Defaults to the size of the smallest data set."""
    draw: Literal["once", "epoch"] = "epoch"
    """Whether samples are drawn once per run or in each epoch."""

    def segments(self, feed: Feed) -> list[Segment]:
        samples = feed.samples(self.cap or min(feed.sizes.values()), self.draw, self.drop_last)
        return [
            Segment(sample.per_epoch, partial(_alone, sample, epoch), ends_epoch=sample is samples[-1])
            for epoch in range(feed.epochs)
            for sample in samples
        ]


def _alone(sample: SampleStream, epoch: int, i: int) -> Round:
    return [(sample.source, sample.batch(epoch, i))]
