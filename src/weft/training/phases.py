"""Phases of a run: trainable parameters, schedule and learning rate."""

from dataclasses import dataclass

from pydantic import Field

from weft.foundation.config import Config
from weft.schedules import ScheduleConfig
from weft.schedules.plan import Plan
from weft.training.optimizer import OptimizerConfig, share_of_peak
from weft.training.trainable import TrainableConfig


class PhaseConfig(Config):
    """A part of a run. Each key defaults to the recipe's value."""

    epochs: int = Field(ge=1)
    """Epochs of this phase. The epochs of all phases add up to the recipe's `epochs`."""
    trainable: TrainableConfig | None = None
    """Trainable parameters. Defaults to the recipe's `trainable`."""
    schedule: ScheduleConfig | None = None
    """Schedule. Defaults to the recipe's `schedule`."""
    lr: float | None = Field(default=None, gt=0)
    """Peak learning rate. Defaults to `optimizer.lr`."""


@dataclass(frozen=True)
class Phase:
    """A phase with all defaults filled in."""

    epochs: int
    trainable: TrainableConfig
    schedule: ScheduleConfig
    lr: float


class Rates:
    """The learning rate of every step of a plan."""

    def __init__(self, plan: Plan, phases: list[Phase], config: OptimizerConfig, stretch: float) -> None:
        """`stretch` is the factor by which a budget changes the length of the run, and of the warm-up."""
        self.plan = plan
        self.phases = phases
        self.config = config
        self.warmup = round(config.warmup * stretch)

    def __call__(self, step: int) -> float:
        return self.phases[self.plan.phase(step)].lr * self.share(step)

    def share(self, step: int) -> float:
        """Return the learning rate of a step as a share of the phase's peak."""
        number = self.plan.phase(step)
        start = self.plan.phase_ends[number - 1] if number else 0
        length = self.plan.phase_ends[number] - start
        return share_of_peak(self.config.curve, step - start, length, min(self.warmup, length - 1))
