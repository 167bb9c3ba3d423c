"""One pass over every data set per epoch, with batch sizes proportional to the data set sizes."""

from math import ceil
from typing import Literal

from weft.schedules.base import Feed, ScheduleOptions, Segment
from weft.schedules.batch_round_robin import round_robin


class FullDataConfig(ScheduleOptions):
    """`batches = largest / its batch size`, `batch_i = max(1, round(len_i / batches))`.

    The largest data set keeps its batch size and is used once per epoch; the rule gives the batch sizes of the other
    tasks. Because of rounding they make slightly less or more than one pass, and continue from there in the next epoch.
    """

    name: Literal["full-data"] = "full-data"

    def segments(self, feed: Feed) -> list[Segment]:
        largest = max(feed.sizes, key=feed.sizes.__getitem__)
        rounds = feed.stream(largest, self.drop_last).per_pass
        batches = ceil(feed.sizes[largest] / feed.batch_sizes[largest])
        streams = []
        for name, size in feed.sizes.items():
            own = feed.batch_sizes[name] if name == largest else max(1, round(size / batches))
            streams.append(feed.stream(name, self.drop_last, own))
        return round_robin(streams, rounds, feed.epochs)
