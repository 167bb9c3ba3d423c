"""Outputs that stay the same when the embeddings are nudged in the worst direction."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from weft.regularizers.base import Divergence, Regularizer, Run
from weft.variants import Config


class Smart(Regularizer):
    """`lambda max_{|d| <= eps} l_s(f(x + d), f(x))` on the embeddings.

    Jiang et al., "SMART", 2020. The worst d is sought by gradient ascent from a small random start. Two projections:
    `normalize` divides each token's noise by its largest entry after every ascent step, epsilon only guarding the
    division (so the noise is about 1, as in the public implementation that report 4 used); `ball` cuts every entry at
    epsilon, as the formula says, which in fp32 makes the term vanish for 1e-6. Clean and perturbed pass share their
    dropout masks, otherwise the term would measure dropout. The ascent computes gradients of the noise alone.
    """

    def __init__(self, config: "SmartConfig") -> None:
        super().__init__(config.weight)
        self.config = config

    def forward(self, run: Run, embedded: Tensor, output: Tensor, divergence: Divergence) -> Tensor:
        noise = torch.randn_like(embedded) * self.config.sigma
        for _ in range(self.config.steps):
            noise = self._ascend(run, embedded.detach(), noise.detach(), output.detach(), divergence)
        return self.weight * divergence(run(embedded + noise, 0), output)

    def _ascend(self, run: Run, embedded: Tensor, noise: Tensor, clean: Tensor, divergence: Divergence) -> Tensor:
        noise = noise.requires_grad_()
        (gradient,) = torch.autograd.grad(divergence(run(embedded + noise, 0), clean).sum(), noise)
        with torch.no_grad():
            raised = noise + self.config.step_size * gradient
            if self.config.projection == "ball":
                return raised.clamp(-self.config.epsilon, self.config.epsilon)
            return raised / (raised.abs().amax(dim=1, keepdim=True) + self.config.epsilon)


class SmartConfig(Config):
    name: Literal["smart"] = "smart"
    weight: float = Field(default=0.45, gt=0)
    """lambda"""
    steps: int = Field(default=1, ge=1)
    """ascent steps"""
    sigma: float = Field(default=1e-5, gt=0)
    """deviation of the random start"""
    epsilon: float = Field(default=1e-6, gt=0)
    """radius of the ball, or what guards the division"""
    step_size: float = Field(default=1e-3, gt=0)
    """how far each ascent step goes"""
    projection: Literal["normalize", "ball"] = "normalize"
    """how the noise is kept small"""

    def build(self) -> Smart:
        return Smart(self)
