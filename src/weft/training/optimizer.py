"""AdamW, which parameters decay, and how the rate moves."""

from typing import Literal

import torch
from pydantic import Field
from torch import nn

from weft.variants import Config


class OptimizerConfig(Config):
    lr: float = Field(default=2e-5, gt=0)
    """highest learning rate"""
    weight_decay: float = Field(default=0.0, ge=0)
    """pull towards zero at each step, on all weights but LayerNorms and biases"""
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = Field(default=1e-8, gt=0)
    curve: Literal["linear", "constant"] = "linear"
    """after warm-up: linear falls to zero at the last step, constant stays"""
    warmup: int = Field(default=0, ge=0)
    """steps over which the rate rises from zero"""
    clip: float | None = Field(default=None, gt=0)
    """largest norm of the whole gradient; none unless said"""
    accumulate: int = Field(default=1, ge=1)
    """forward passes of each task in one step"""
    precision: Literal["fp32", "fp64"] = "fp32"
    """what weights and activations are computed in"""


def build_optimizer(modules: list[nn.Module], config: OptimizerConfig) -> torch.optim.AdamW:
    """Fused AdamW over all parameters that train, in the order in which the modules name them."""
    decayed: list[nn.Parameter] = []
    plain: list[nn.Parameter] = []
    seen: set[nn.Parameter] = set()
    for module in modules:
        for parameter in module.parameters():
            if parameter.requires_grad and parameter not in seen:
                seen.add(parameter)
                (decayed if parameter.ndim > 1 else plain).append(parameter)
    groups = [
        {"params": decayed, "weight_decay": config.weight_decay},
        {"params": plain, "weight_decay": 0.0},  # LayerNorms, biases and single learnt numbers
    ]
    return torch.optim.AdamW(groups, lr=config.lr, betas=config.betas, eps=config.eps, fused=True)


def rate(config: OptimizerConfig, step: int, steps: int, warmup: int) -> float:
    """Learning rate of step `step`, from 0, of `steps`."""
    if step < warmup:
        return config.lr * (step + 1) / (warmup + 1)
    if config.curve == "constant":
        return config.lr
    return config.lr * (steps - step) / (steps - warmup)
