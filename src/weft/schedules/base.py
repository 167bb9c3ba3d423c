"""Interface of schedules: a schedule returns segments, from which `plan.py` builds windows."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import Field

from weft.foundation.components import Component
from weft.foundation.errors import UserError
from weft.foundation.values import Rows
from weft.schedules.streams import BatchStream, SampleStream

Round = list[tuple[str, Rows]]
"""the batches of one forward pass: (task, rows)"""


@dataclass(frozen=True)
class Feed:
    """The input of a schedule."""

    sizes: Mapping[str, int]
    """rows of each task's train set"""
    batch_sizes: Mapping[str, int]
    """rows of each task in a batch"""
    epochs: int
    """number of epochs"""
    seed: int
    """the recipe's seed"""
    phase: int = 0
    """number of the phase; each phase shuffles differently"""
    times: int = 1
    """factor by which a large budget multiplies the recipe's epochs, and all options that count epochs"""

    def streams(self, drop_last: bool) -> list[BatchStream]:
        """Return an infinite stream of batches per task, in the recipe's order."""
        return [self.stream(task, drop_last) for task in self.sizes]

    def stream(self, task: str, drop_last: bool, batch_size: int | None = None) -> BatchStream:
        size = batch_size or self.batch_sizes[task]
        return BatchStream(task, self.sizes[task], size, drop_last, (self.seed, self.phase))

    def samples(self, take: int, draw: str, drop_last: bool) -> list[SampleStream]:
        """Return a sample of `take` rows per task, drawn `once` or in each `epoch`."""
        seeds = (self.seed, self.phase)
        return [
            SampleStream(task, size, min(take, size), self.batch_sizes[task], drop_last, draw, seeds)
            for task, size in self.sizes.items()
        ]


@dataclass(frozen=True)
class Segment:
    """A contiguous part of a plan that follows one rule. A window never crosses its end."""

    rounds: int
    """number of forward passes"""
    round: Callable[[int], Round]
    """the batches of round i, from 0; a function of i only"""
    ends_epoch: bool
    """whether an epoch ends with this segment"""


class ScheduleOptions(Component):
    """Base class of all schedule configs, with the options that every schedule supports."""

    drop_last: bool = False
    """Whether to drop the last batch of a pass if it is incomplete."""
    tasks: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Tasks to train. Other tasks are only scored, with untrained heads. Defaults to all tasks."""

    @abstractmethod
    def segments(self, feed: Feed) -> list[Segment]:
        """Return the segments of a run, in order."""

    def chosen(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Return the sizes of the data sets that this schedule uses, in the recipe's order."""
        unknown = [task for task in self.tasks or () if task not in sizes]
        if unknown:
            raise UserError(f"schedule.tasks: found {unknown[0]!r}, expected some of {', '.join(sizes)}")
        return {task: size for task, size in sizes.items() if self.tasks is None or task in self.tasks}
