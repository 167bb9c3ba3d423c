"""Which tasks feed the next optimizer step."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from weft.types import Window


@dataclass(frozen=True)
class Feed:
    """What a schedule needs to know."""

    sizes: Mapping[str, int]
    """rows of each task's train set"""
    batch_sizes: Mapping[str, int]
    epochs: int
    accumulate: int
    """forward passes of each task in a window"""
    seed: int


class Plan(ABC):
    """All windows of a run. The step is its whole state: `window` may be asked in any order, any number of times."""

    steps: int
    """optimizer steps in total"""
    epoch_ends: tuple[int, ...]
    """after how many steps each epoch ends; the last one is `steps`"""

    @property
    def evaluations(self) -> tuple[int, ...]:
        """After how many steps the dev scores are measured; 0 scores the untrained heads."""
        return (0, *self.epoch_ends)

    @abstractmethod
    def window(self, step: int) -> Window:
        """What step number `step`, from 0, works on."""

    def epoch(self, step: int) -> int:
        """Number of the epoch, from 1, that step `step` belongs to."""
        return 1 + sum(end <= step for end in self.epoch_ends)


class Stretched(Plan):
    """Another plan in a given number of steps: evenly spaced windows of it, so phases keep their shares."""

    def __init__(self, plan: Plan, steps: int) -> None:
        self.plan = plan
        self.steps = steps
        self.epoch_ends = tuple(ceil(end * steps / plan.steps) for end in plan.epoch_ends)

    @property
    def evaluations(self) -> tuple[int, ...]:
        return (self.steps,)

    def window(self, step: int) -> Window:
        source = self.plan.window(step * self.plan.steps // self.steps)
        return Window(step, source.parts)
