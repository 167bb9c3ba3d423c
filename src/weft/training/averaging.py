"""Averages of the weights over the steps of a run, evaluated and saved instead of the weights themselves."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from weft.foundation.config import NAME_ALONE, Config
from weft.foundation.errors import UserError


class EmaConfig(Config):
    """Exponential moving average: the mean of the weights after each step, the weights i steps ago counted `decay^i`.

    The weights before the first step do not count, so a short run needs no other decay. (Polyak and Juditsky,
    "Acceleration of Stochastic Approximation by Averaging", 1992; the correction is that of Adam's moments.)
    """

    name: Literal["ema"] = "ema"
    decay: float = Field(default=0.999, gt=0, lt=1)
    """Factor on all earlier weights at each step. The average covers about `1 / (1 - decay)` steps."""

    def rate(self, step: int, steps: int) -> float:  # noqa: ARG002 -- swa depends on the length of the run
        """Return how far the average moves towards the weights after `step` steps, from 0 to 1."""
        return (1 - self.decay) / (1 - self.decay**step)

    def check(self, steps: int) -> None:
        """Raise UserError if the average of a run would be its last weights."""
        if steps < 2:
            raise UserError("average: 'ema' averages over steps, but the run has only one; leave it out")


class SwaConfig(Config):
    """Stochastic weight averaging: the mean of the weights at regular steps in the last part of a run.

    Before that part, the weights themselves are evaluated and saved. (Izmailov et al., "Averaging Weights Leads to
    Wider Optima and Better Generalization", 2018. We follow the recipe's learning rate curve instead of a constant
    or cyclical one; `curve = "constant"` is closest to the paper.)
    """

    name: Literal["swa"] = "swa"
    start: float = Field(default=0.5, ge=0, lt=1)
    """Fraction of the run's steps after which averaging begins."""
    every: int = Field(default=1, ge=1)
    """Steps between the weights that are averaged."""

    def rate(self, step: int, steps: int) -> float:
        """Return how far the average moves towards the weights after `step` steps, from 0 to 1."""
        since = step - self._first(steps)
        if since < 0:
            return 1.0
        return 1 / (1 + since // self.every) if since % self.every == 0 else 0.0

    def check(self, steps: int) -> None:
        """Raise UserError if the average of a run would be its last weights."""
        first = self._first(steps)
        if first + self.every > steps:
            raise UserError(
                f"average: 'swa' with start = {self.start:g} and every = {self.every} averages the weights of one step "
                f"in a run of {steps} steps; choose smaller values"
            )

    def _first(self, steps: int) -> int:
        """Return the first step whose weights are averaged."""
        return max(1, round(self.start * steps))


AverageConfig = Annotated[EmaConfig | SwaConfig, Field(discriminator="name"), NAME_ALONE]
"""The registry: a recipe's `average` is one of these."""


class WeightAverage(nn.Module):
    """The average of a network's parameters: `a <- a + rate (w - a)` after each step.

    The rate is a function of the step, so the averages, kept as buffers and saved with checkpoints, are the whole
    state. A parameter that is frozen equals its average.
    """

    def __init__(self, network: nn.Module, config: AverageConfig, steps: int) -> None:
        """`steps` is the length of the run."""
        super().__init__()
        self.config = config
        self.steps = steps
        self._weights = tuple(network.parameters())
        for number, parameter in enumerate(self._weights):
            self.register_buffer(str(number), parameter.detach().clone())

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Add the weights after `step` steps to the average."""
        rate = self.config.rate(step, self.steps)
        if rate > 0:
            for average, parameter in self._pairs():
                average.lerp_(parameter, rate)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Inside the context, the network has the averaged weights; afterwards it has its own again, bit by bit."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for average, parameter in self._pairs():
            weights = parameter.clone()
            parameter.copy_(average)
            average.copy_(weights)

    def _pairs(self) -> Iterator[tuple[Tensor, nn.Parameter]]:
        return zip(self.buffers(), self._weights, strict=True)
