"""Every set used up in the same number of steps, by batches as large as that takes."""

from math import ceil
from typing import Literal

from weft.schedules.base import Feed, ScheduleOptions, Segment
from weft.schedules.batch_round_robin import round_robin


class FullDataConfig(ScheduleOptions):
    """`batches = largest / its batch size`, `batch_i = max(1, round(len_i / batches))`.

    The largest set keeps its own batch size and is seen once an epoch; the other tasks' batch sizes follow from the
    rule. Rounding leaves them a little short of a pass, or takes them a little beyond one: they go on from there in
    the next epoch.
    """

    name: Literal["full-data"] = "full-data"

    def segments(self, feed: Feed) -> list[Segment]:
        largest = max(feed.sizes, key=feed.sizes.__getitem__)
        rounds = feed.stream(largest, self.drop_last).per_pass
        batches = ceil(feed.sizes[largest] / feed.batch_sizes[largest])
        streams = []
        for task, size in feed.sizes.items():
            own = feed.batch_sizes[task] if task == largest else max(1, round(size / batches))
            streams.append(feed.stream(task, self.drop_last, own))
        return round_robin(streams, rounds, feed.epochs)
