"""A run in phases over one global step: what trains, and how fast."""

from dataclasses import dataclass

from pydantic import Field

from weft.foundation.config import Config
from weft.schedules import ScheduleConfig
from weft.schedules.plan import Plan
from weft.training.optimizer import OptimizerConfig, share_of_peak
from weft.training.trainable import TrainableConfig


class PhaseConfig(Config):
    """What is left out is the recipe's own."""

    epochs: int = Field(ge=1)
    """epochs of this phase; those of all phases make the recipe's `epochs`"""
    trainable: TrainableConfig | None = None
    """what trains"""
    schedule: ScheduleConfig | None = None
    """which tasks feed each step"""
    lr: float | None = Field(default=None, gt=0)
    """highest learning rate"""


@dataclass(frozen=True)
class Phase:
    """A phase with nothing left open."""

    epochs: int
    trainable: TrainableConfig
    schedule: ScheduleConfig
    lr: float


class Rates:
    """The learning rate of every step of a plan."""

    def __init__(self, plan: Plan, phases: list[Phase], config: OptimizerConfig, stretch: float) -> None:
        """`stretch` is by how much a budget changes the length of the run; warm-up changes with it."""
        self.plan = plan
        self.phases = phases
        self.config = config
        self.warmup = round(config.warmup * stretch)

    def __call__(self, step: int) -> float:
        return self.phases[self.plan.phase(step)].lr * self.share(step)

    def share(self, step: int) -> float:
        """What part of its phase's highest rate a step moves at."""
        number = self.plan.phase(step)
        start = self.plan.phase_ends[number - 1] if number else 0
        length = self.plan.phase_ends[number] - start
        return share_of_peak(self.config.curve, step - start, length, min(self.warmup, length - 1))
