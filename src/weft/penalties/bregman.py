"""Bregman proximal point: limits how far outputs or weights move in one step."""

import copy
from typing import Literal, cast

import torch
from pydantic import Field
from torch import Tensor, nn

from weft.penalties.base import Divergence, Named, Network, OutputPenalty, PenaltyOptions, WeightPenalty


class Bregman(OutputPenalty):
    """`mu l_s(f(x; theta), f(x; m))`, m a moving average of the weights: `m <- beta m + (1 - beta) theta` after a step.

    The momentum Bregman proximal point method of Jiang et al., "SMART", 2020. It penalizes *outputs* that differ from
    those of a momentum teacher. l_s is the symmetrized KL divergence for classes and the squared error for numbers; its
    mean over a task's rows is summed over tasks. Both models use the same dropout masks, otherwise the term would
    measure dropout; it is therefore zero at the first step. It costs one forward pass of the teacher and the memory of
    its weights.
    """

    def __init__(self, weight: float, beta: float) -> None:
        super().__init__()
        self.weight = weight
        self.beta = beta

    def prepare(self, network: nn.Module) -> None:
        self.teacher = copy.deepcopy(network).requires_grad_(False)

    def earlier(self, network: Network) -> Network:
        # module by module, because a frozen part of the network has no dropout
        for theirs, ours in zip(self.teacher.modules(), network.modules(), strict=True):
            theirs.training = ours.training
        return cast(Network, self.teacher)

    def forward(self, output: Tensor, before: Tensor, divergence: Divergence) -> Tensor:
        return self.weight * divergence(output, before)

    @torch.no_grad()
    def after_step(self, network: nn.Module) -> None:
        for average, parameter in zip(self.teacher.parameters(), network.parameters(), strict=True):
            average.lerp_(parameter, 1 - self.beta)


class BregmanWeights(WeightPenalty):
    """`mu / 2 |theta - m|^2`, m a moving average of the weights: penalizes *weights* that differ from it.

    The squared norm of weights replaces SMART's divergence of outputs. It needs no further forward pass, but treats all
    weights alike, and a large mu stops training: with 1 nothing is learned, with 0.01 training is only slower.
    """

    def __init__(self, weight: float, beta: float) -> None:
        super().__init__()
        self.weight = weight
        self.beta = beta
        self.averages: dict[str, Tensor] = {}

    def prepare(self, network: nn.Module) -> None:
        """Register the averages as buffers before training, so that checkpoints save them."""
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
    """Keep outputs close to those of a moving average of the model."""

    name: Literal["bregman"] = "bregman"
    weight: float = Field(default=1.0, gt=0)
    """Weight mu of the penalty."""
    beta: float = Field(default=0.99, ge=0, lt=1)
    """Decay of the moving average."""

    def build(self) -> Bregman:
        return Bregman(self.weight, self.beta)


class BregmanWeightsConfig(PenaltyOptions):
    """Keep weights close to their moving average."""

    name: Literal["bregman-weights"] = "bregman-weights"
    weight: float = Field(default=0.01, gt=0)
    """Weight mu of the penalty."""
    beta: float = Field(default=0.99, ge=0, lt=1)
    """Decay of the moving average."""

    def build(self) -> BregmanWeights:
        return BregmanWeights(self.weight, self.beta)
