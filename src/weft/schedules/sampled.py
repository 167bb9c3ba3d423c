"""Round robin until the smaller data sets are exhausted; the largest is sampled."""

from functools import partial
from typing import Literal

from weft.schedules.base import Feed, Round, ScheduleOptions, Segment
from weft.schedules.streams import BatchStream, SampleStream


class SampledConfig(ScheduleOptions):
    """Round robin; an epoch is one pass over every data set except the largest, and exhausted data sets are left out.

    The largest data set, by batches, is sampled without replacement in each epoch.
    """

    name: Literal["sampled"] = "sampled"

    def segments(self, feed: Feed) -> list[Segment]:
        streams = feed.streams(self.drop_last)
        largest = max(streams, key=lambda stream: stream.per_pass)
        small = [stream for stream in streams if stream is not largest]
        rounds = max((stream.per_pass for stream in small), default=largest.per_pass)
        take = min(rounds * largest.batch_size, largest.size)
        seeds = (feed.seed, feed.phase)
        sample = SampleStream(largest.source, largest.size, take, largest.batch_size, self.drop_last, "epoch", seeds)
        return [
            Segment(rounds, partial(_round, streams, sample, epoch), ends_epoch=True) for epoch in range(feed.epochs)
        ]


def _round(streams: list[BatchStream], sample: SampleStream, epoch: int, i: int) -> Round:
    batches = []
    for stream in streams:
        if stream.source == sample.source:
            batches.append((stream.source, sample.batch(epoch, i)))
        elif i < stream.per_pass:
            batches.append((stream.source, stream.batch(epoch * stream.per_pass + i)))
    return batches
