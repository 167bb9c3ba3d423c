"""Every data set subsampled to the size of the smallest, one batch of each per step."""

from functools import partial
from typing import Literal

from weft.schedules.base import Feed, Round, ScheduleOptions, Segment
from weft.schedules.streams import SampleStream


class BalancedConfig(ScheduleOptions):
    """Round robin over samples of the data sets, each as large as the smallest data set.

    With unequal batch sizes, a task whose sample is exhausted is left out of further rounds, so each row of a sample is
    used once per epoch.
    """

    name: Literal["balanced"] = "balanced"
    draw: Literal["once", "epoch"] = "epoch"
    """Whether samples are drawn once per run or in each epoch."""

    def segments(self, feed: Feed) -> list[Segment]:
        samples = feed.samples(min(feed.sizes.values()), self.draw, self.drop_last)
        rounds = max(sample.per_epoch for sample in samples)
        return [Segment(rounds, partial(_those_left, samples, epoch), ends_epoch=True) for epoch in range(feed.epochs)]


def _those_left(samples: list[SampleStream], epoch: int, i: int) -> Round:
    return [(sample.source, sample.batch(epoch, i)) for sample in samples if i < sample.per_epoch]
