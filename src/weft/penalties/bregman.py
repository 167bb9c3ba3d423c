"""Bregman proximal point: a brake on how far one step may go."""

import copy
from typing import Literal, cast

import torch
from pydantic import Field
from torch import Tensor, nn

from weft.penalties.base import Divergence, Named, Network, OutputPenalty, PenaltyOptions, WeightPenalty


class Bregman(OutputPenalty):
    """`mu l_s(f(x; theta), f(x; m))`, m a moving average of the weights: `m <- beta m + (1 - beta) theta` after a step.

    The momentum Bregman proximal point of Jiang et al., "SMART", 2020: the model pays for *outputs* that leave those of
    its momentum teacher. l_s is the symmetrized KL divergence for classes and the squared error for numbers; its mean
    over a task's rows is summed over tasks. Both models have the same dropout masks, otherwise the term would measure
    dropout; so it is zero at the first step. It costs one forward pass of the teacher and its memory.
    """

    def __init__(self, weight: float, beta: float) -> None:
        super().__init__()
        self.weight = weight
        self.beta = beta

    def prepare(self, network: nn.Module) -> None:
        self.teacher = copy.deepcopy(network).requires_grad_(False)

    def earlier(self, network: Network) -> Network:
        return cast(Network, self.teacher.train(network.training))

    def forward(self, output: Tensor, before: Tensor, divergence: Divergence) -> Tensor:
        return self.weight * divergence(output, before)

    @torch.no_grad()
    def after_step(self, network: nn.Module) -> None:
        for average, parameter in zip(self.teacher.parameters(), network.parameters(), strict=True):
            average.lerp_(parameter, 1 - self.beta)


class BregmanWeights(WeightPenalty):
    """`mu / 2 |theta - m|^2`, m the same moving average: the model pays for *weights* that leave it.

    The squared norm instead of SMART's divergence of outputs. It needs no further pass, but treats all weights alike
    and stops training where mu is large: at 1 nothing is learnt, at .01 it only slows down.
    """

    def __init__(self, weight: float, beta: float) -> None:
        super().__init__()
        self.weight = weight
        self.beta = beta
        self.averages: dict[str, Tensor] = {}

    def prepare(self, network: nn.Module) -> None:
        """The averages are there from the start, so that checkpoints know of them."""
        for name, parameter in network.named_parameters():
            key = "average/" + name.replace(".", "/")
            self.register_buffer(key, parameter.detach().clone())
            self.averages[name] = self.get_buffer(key)

    def forward(self, parameters: Named) -> Tensor:
        distances = [(p - self.averages[name]).square().sum() for name, p in parameters]
        return self.weight / 2 * torch.stack(distances).sum()

    @torch.no_grad()
    def after_step(self, network: nn.Module) -> None:
        for name, parameter in network.named_parameters():
            self.averages[name].lerp_(parameter, 1 - self.beta)


class BregmanConfig(PenaltyOptions):
    """Outputs stay close to those of a moving average of the model."""

    name: Literal["bregman"] = "bregman"
    weight: float = Field(default=1.0, gt=0)
    """mu"""
    beta: float = Field(default=0.99, ge=0, lt=1)
    """how much of the average stays"""

    def build(self) -> Bregman:
        return Bregman(self.weight, self.beta)


class BregmanWeightsConfig(PenaltyOptions):
    """Weights stay close to their moving average."""

    name: Literal["bregman-weights"] = "bregman-weights"
    weight: float = Field(default=0.01, gt=0)
    """mu"""
    beta: float = Field(default=0.99, ge=0, lt=1)
    """how much of the average stays"""

    def build(self) -> BregmanWeights:
        return BregmanWeights(self.weight, self.beta)
