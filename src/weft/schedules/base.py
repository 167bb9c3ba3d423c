"""Interface of schedules: a schedule returns segments, from which `plan.py` builds windows."""

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from pydantic import Field

from weft.foundation.components import Component
from weft.foundation.errors import UserError
from weft.foundation.values import Rows
from weft.schedules.streams import BatchStream, SampleStream

Round = list[tuple[str, Rows]]
"""the batches of one forward pass: (source, rows), or (task, rows) to ask one task of a source alone"""


@dataclass(frozen=True)
class Feed:
    """The input of a schedule. Rows are drawn from sources: a source is named by its tasks, "a+b", mostly one alone."""

    sizes: Mapping[str, int]
    """rows of each source"""
    batch_sizes: Mapping[str, int]
    """rows of each source in a batch"""
    epochs: int
    """number of epochs"""
    seed: int
    """the recipe's seed"""
    phase: int = 0
    """number of the phase; each phase shuffles differently"""
    times: int = 1
    """factor by which a large budget multiplies the recipe's epochs, and all options that count epochs"""
    askers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """source -> task -> number of rows that the task asks about; sources with one task may be left out"""

    @property
    def tasks(self) -> dict[str, str]:
        """task -> its source, in the recipe's order"""
        return {task: name for name in self.sizes for task in self.askers.get(name, (name,))}

    def streams(self, drop_last: bool) -> list[BatchStream]:
        """Return an infinite stream of batches per source, in the recipe's order."""
        return [self.stream(name, drop_last) for name in self.sizes]

    def stream(self, name: str, drop_last: bool, batch_size: int | None = None) -> BatchStream:
        """Return the batches of a source, or of the rows that one of its tasks asks about."""
        source = name if name in self.sizes else self.tasks[name]
        rows = self.sizes[source] if name == source else self.askers[source][name]
        return BatchStream(name, rows, batch_size or self.batch_sizes[source], drop_last, (self.seed, self.phase))

    def samples(self, take: int, draw: str, drop_last: bool) -> list[SampleStream]:
        """Return a sample of `take` rows per source, drawn `once` or in each `epoch`."""
        seeds = (self.seed, self.phase)
        return [
            SampleStream(name, size, min(take, size), self.batch_sizes[name], drop_last, draw, seeds)
            for name, size in self.sizes.items()
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

    def chosen(self, tasks: Collection[str]) -> list[str]:
        """Return those of the tasks that this schedule trains, in the recipe's order."""
        unknown = [task for task in self.tasks or () if task not in tasks]
        if unknown:
            raise UserError(f"schedule.tasks: found {unknown[0]!r}, expected some of {', '.join(tasks)}")
        return [task for task in tasks if self.tasks is None or task in self.tasks]
