"""SMART: consistency of outputs under adversarial perturbations of the embeddings."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from weft.foundation.gradients import of_inputs_only
from weft.regularizers.base import Divergence, Regularizer, RegularizerOptions, Run

LEAST_GRADIENT = 1e-30
"""Avoids division by zero. Divergences of small noise have gradients far below `epsilon`."""


class Smart(Regularizer):
    """`lambda max_{|d| <= eps} l_s(f(x + d), f(x))` on the embeddings.

    Jiang et al., "SMART: Robust and Efficient Fine-Tuning for Pre-trained Natural Language Models", 2020. Gradient
    ascent on the divergence searches for the worst d, from small random noise. Three projections:

    - `gradient`: each token's gradient is divided by its largest entry, and the noise moves by `step_size` along it.
      The noise is small (about `step_size`) and points in the direction in which the output changes most.
    - `normalize`: the raw, very small gradient is added to the noise, and each token's noise is divided by its
      largest entry. The noise is large (about 1) and stays nearly random: the ascent has almost no effect. The public
      implementation used for report 4 does this.
    - `ball`: every entry of the noise is clipped at `epsilon`, as in the formula. In fp32 the term vanishes for 1e-6.

    The first two both exist in published versions of the authors' code. The clean and the perturbed pass share their
    dropout masks; otherwise the term would measure dropout. The ascent computes gradients of the noise only.
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
        with of_inputs_only():
            (gradient,) = torch.autograd.grad(divergence(run(embedded + noise, 0), clean).sum(), noise)
        with torch.no_grad():
            if self.config.projection == "gradient":
                return noise + self.config.step_size * _by_largest(gradient, LEAST_GRADIENT)
            raised = noise + self.config.step_size * gradient
            if self.config.projection == "ball":
                return raised.clamp(-self.config.epsilon, self.config.epsilon)
            return _by_largest(raised, self.config.epsilon)


def _by_largest(tokens: Tensor, guard: float) -> Tensor:
    """[t, w] divide each token's vector by its largest absolute entry plus `guard`; a zero vector stays zero."""
    return tokens / (tokens.abs().amax(dim=1, keepdim=True) + guard)


class SmartConfig(RegularizerOptions):
    name: Literal["smart"] = "smart"
    weight: float = Field(default=0.45, gt=0)
    """Weight lambda of the term."""
    steps: int = Field(default=1, ge=1)
    """Number of ascent steps."""
    sigma: float = Field(default=1e-5, gt=0)
    """Standard deviation of the initial noise."""
    epsilon: float = Field(default=1e-6, gt=0)
    """Radius of the ball for `ball`; added to the divisor for `normalize`; not used by `gradient`."""
    step_size: float = Field(default=1e-3, gt=0)
    """Size of an ascent step: the largest entry of a token's step for `gradient`, else a factor on the gradient."""
    projection: Literal["gradient", "normalize", "ball"] = "gradient"
    """How the ascent updates the noise: along the normalized gradient, by normalizing the noise, or inside a ball."""

    def build(self) -> Smart:
        return Smart(self)
