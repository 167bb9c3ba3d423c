"""What a schedule is told, and what it answers: a list of segments, of which `plan.py` makes windows."""

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
    """What a schedule needs to know."""

    sizes: Mapping[str, int]
    """rows of each task's train set"""
    batch_sizes: Mapping[str, int]
    epochs: int
    seed: int
    phase: int = 0
    """number of the phase: each shuffles in its own way"""
    times: int = 1
    """by how much a large budget multiplies the recipe's epochs; what else counts epochs grows with it"""

    def streams(self, drop_last: bool) -> list[BatchStream]:
        """One endless stream of batches for each task, in the recipe's order."""
        return [self.stream(task, drop_last) for task in self.sizes]

    def stream(self, task: str, drop_last: bool, batch_size: int | None = None) -> BatchStream:
        size = batch_size or self.batch_sizes[task]
        return BatchStream(task, self.sizes[task], size, drop_last, (self.seed, self.phase))

    def samples(self, take: int, draw: str, drop_last: bool) -> list[SampleStream]:
        """For each task a part of its set, `take` rows, drawn `once` or anew each `epoch`."""
        seeds = (self.seed, self.phase)
        return [
            SampleStream(task, size, min(take, size), self.batch_sizes[task], drop_last, draw, seeds)
            for task, size in self.sizes.items()
        ]


@dataclass(frozen=True)
class Segment:
    """A stretch of a plan that follows one rule. A window never reaches over its end."""

    rounds: int
    round: Callable[[int], Round]
    """the batches of round i, from 0; a function of i alone"""
    ends_epoch: bool


class ScheduleOptions(Component):
    """The base of all config classes of schedules, and what every schedule can be told."""

    drop_last: bool = False
    """leave out the last batch of a pass when it is short; it is kept unless said"""
    tasks: tuple[str, ...] | None = Field(default=None, min_length=1)
    """the tasks that train; the others are only scored, with heads as they were made. All unless said"""

    @abstractmethod
    def segments(self, feed: Feed) -> list[Segment]:
        """The stretches of a run, in order."""

    def chosen(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """The sizes of the sets that feed this schedule, in the recipe's order."""
        unknown = [task for task in self.tasks or () if task not in sizes]
        if unknown:
            raise UserError(f"schedule.tasks: found {unknown[0]!r}, expected some of {', '.join(sizes)}")
        return {task: size for task, size in sizes.items() if self.tasks is None or task in self.tasks}
