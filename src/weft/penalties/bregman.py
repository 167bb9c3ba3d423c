"""A brake on how far one step may go."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from weft.penalties.base import Named, Penalty
from weft.variants import Config


class Bregman(Penalty):
    """`mu / 2 |theta - m|^2`, m a moving average of the weights: `m <- beta m + (1 - beta) theta` after each step.

    The proximal term of Jiang et al., "SMART", 2020, with the squared norm for its Bregman divergence (they measure the
    distance of the outputs, which takes another pass through the model). m starts at the first weights it sees.
    """

    def __init__(self, weight: float, beta: float) -> None:
        super().__init__()
        self.weight = weight
        self.beta = beta
        self.averages: dict[str, Tensor] = {}

    def prepare(self, parameters: Named) -> None:
        """The averages are there from the start, so that checkpoints know of them."""
        for name, parameter in parameters:
            key = name.replace(".", "/")
            self.register_buffer(key, parameter.detach().clone())
            self.averages[name] = self.get_buffer(key)

    def forward(self, parameters: Named) -> Tensor:
        distances = [(p - self.averages[name]).square().sum() for name, p in parameters]
        return self.weight / 2 * torch.stack(distances).sum()

    @torch.no_grad()
    def after_step(self, parameters: Named) -> None:
        for name, parameter in parameters:
            self.averages[name].lerp_(parameter, 1 - self.beta)


class BregmanConfig(Config):
    name: Literal["bregman"] = "bregman"
    weight: float = Field(default=1.0, gt=0)
    """mu"""
    beta: float = Field(default=0.99, ge=0, lt=1)
    """how much of the average stays"""

    def build(self) -> Bregman:
        return Bregman(self.weight, self.beta)
