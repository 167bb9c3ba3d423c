"""The plan of a run, built from segments: which rows of which tasks are used in each optimizer step."""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate as running_totals
from math import ceil

from weft.foundation.values import Window
from weft.schedules.base import Segment
from weft.schedules.sources import SourceRows


class Plan(ABC):
    """All windows of a run. A plan is stateless: `window` can be called in any order and repeatedly."""

    steps: int
    """total number of optimizer steps"""
    epoch_ends: tuple[int, ...]
    """number of steps after which each epoch ends; the last is `steps`"""
    phase_ends: tuple[int, ...]
    """number of steps after which each phase ends; the last is `steps`"""

    @property
    def evaluations(self) -> tuple[int, ...]:
        """numbers of steps after which dev scores are measured; 0 scores the untrained heads"""
        return (0, *self.epoch_ends)

    @abstractmethod
    def window(self, step: int) -> Window:
        """Return the window of step `step`, from 0."""

    def epoch(self, step: int) -> int:
        """Return the epoch, from 1, of step `step`."""
        return 1 + bisect_right(self.epoch_ends, step)

    def phase(self, step: int) -> int:
        """Return the phase, from 0, of step `step`."""
        return bisect_right(self.phase_ends, step)


class SegmentPlan(Plan):
    """A plan from consecutive phases, each a list of segments; a window is `accumulate` rounds.

    A round has rows of sources. Each task of a source gets those that it asks about.
    """

    def __init__(self, phases: Sequence[Sequence[Segment]], accumulate: int, sources: Iterable[SourceRows]) -> None:
        """`sources` has every source that a round names."""
        self.sources = {source.name: source for source in sources}
        self.accumulate = accumulate
        self.segments = [segment for phase in phases for segment in phase]
        counts = [ceil(segment.rounds / accumulate) for segment in self.segments]
        self.ends = list(running_totals(counts))
        self.steps = self.ends[-1]
        self.epoch_ends = tuple(
            end for end, segment in zip(self.ends, self.segments, strict=True) if segment.ends_epoch
        )
        lasts = list(running_totals(len(phase) for phase in phases))
        self.phase_ends = tuple(self.ends[last - 1] for last in lasts)

    def window(self, step: int) -> Window:
        number = bisect_right(self.ends, step)
        segment = self.segments[number]
        first = (step - (self.ends[number - 1] if number else 0)) * self.accumulate
        last = min(first + self.accumulate, segment.rounds)
        parts = [
            part
            for micro, i in enumerate(range(first, last))
            for name, rows in segment.round(i)
            for part in self.sources[name].parts(micro, rows)
        ]
        return Window(step, tuple(parts))


class Stretched(Plan):
    """Another plan in a given number of steps: evenly spaced windows of it, so phases keep their proportions."""

    def __init__(self, plan: Plan, steps: int, stretch: float | None = None) -> None:
        """`stretch` is the length relative to the recipe's plan. Defaults to the length relative to `plan`."""
        self.plan = plan
        self.steps = steps
        self.stretch = steps / plan.steps if stretch is None else stretch
        self.epoch_ends = tuple(ceil(end * steps / plan.steps) for end in plan.epoch_ends)
        self.phase_ends = tuple(ceil(end * steps / plan.steps) for end in plan.phase_ends)

    @property
    def evaluations(self) -> tuple[int, ...]:
        return (self.steps,)

    def window(self, step: int) -> Window:
        source = self.plan.window(step * self.plan.steps // self.steps)
        return Window(step, source.parts)
