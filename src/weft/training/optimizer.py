"""AdamW, which parameters move how fast, and how the rate goes over time."""

import math
import re
from typing import Literal

import torch
from pydantic import Field
from torch import nn

from weft.errors import UserError
from weft.tasks.network import Network
from weft.training.trainable import TrainableConfig
from weft.variants import Config
from weft.weighting.base import Weighting


class OptimizerConfig(Config):
    lr: float = Field(default=2e-5, gt=0)
    """highest learning rate"""
    head_lr: float | None = Field(default=None, gt=0)
    """the heads' own highest rate; `lr` unless said"""
    weight_decay: float = Field(default=0.0, ge=0)
    """pull towards zero at each step, on all weights but LayerNorms and biases"""
    betas: tuple[float, float] = (0.9, 0.999)
    """AdamW's memory of gradients and of their squares"""
    eps: float = Field(default=1e-8, gt=0)
    """what AdamW adds before it divides"""
    curve: Literal["linear", "cosine", "constant"] = "linear"
    """after warm-up: linear and cosine fall to zero at the last step of a phase, constant stays"""
    warmup: int = Field(default=0, ge=0)
    """steps over which the rate rises from zero, at the start of each phase"""
    clip: float | None = Field(default=None, gt=0)
    """largest norm of the whole gradient; none unless said"""
    accumulate: int = Field(default=1, ge=1)
    """forward passes of each task in one step"""
    layer_decay: float = Field(default=1.0, gt=0, le=1)
    """xi: each layer learns at xi times the rate of the layer above it, the embeddings below the first layer"""
    layer_factors: tuple[float, ...] | None = None
    """a factor on the rate of each layer, first to last; layer_decay is applied too"""
    precision: Literal["fp32", "fp64", "bf16", "fp16"] = "fp32"
    """fp32, fp64, or mixed: bf16 autocast, or fp16 with loss scaling (GPU only)"""
    gradient_checkpointing: bool = False
    """compute each layer again in the backward pass instead of keeping it: less memory, a third more time"""


def build_optimizer(
    network: Network, weighting: Weighting, config: OptimizerConfig, modes: list[TrainableConfig]
) -> torch.optim.AdamW:
    """Fused AdamW over all that trains in some phase, the learnt weights of losses too.

    Each group has a `factor` on the rate. Parameters that do not train in the present phase have no gradient, and AdamW
    leaves what has no gradient alone.
    """
    layers = network.body.shape.layers
    if config.layer_factors is not None and len(config.layer_factors) != layers:
        raise UserError(
            f"optimizer.layer_factors: found {len(config.layer_factors)} factors, but the body has {layers} layers"
        )
    groups: dict[tuple[float, bool], list[nn.Parameter]] = {}
    for name, parameter in network.named_parameters():
        if any(mode.trains(name) for mode in modes):
            decays = parameter.ndim > 1  # LayerNorms, biases and single learnt numbers do not
            groups.setdefault((rate_factor(name, config, layers), decays), []).append(parameter)
    for parameter in weighting.parameters():
        factor = weighting.lr / config.lr if weighting.lr is not None else 1.0
        groups.setdefault((factor, False), []).append(parameter)
    settings = [
        {"params": parameters, "factor": factor, "weight_decay": config.weight_decay if decays else 0.0}
        for (factor, decays), parameters in groups.items()
    ]
    return torch.optim.AdamW(settings, lr=config.lr, betas=config.betas, eps=config.eps, fused=True)


def rate_factor(name: str, config: OptimizerConfig, layers: int) -> float:
    """By what a parameter's rate differs from `lr`."""
    if not name.startswith("body."):
        return config.head_lr / config.lr if config.head_lr is not None else 1.0
    if name.startswith("body.embeddings."):
        return config.layer_decay**layers
    layer = re.match(r"body\.layers\.(\d+)\.", name)
    if layer is None:  # the pooler stands on top of the last layer
        return 1.0
    k = int(layer[1])
    own = config.layer_factors[k] if config.layer_factors is not None else 1.0
    return float(own * config.layer_decay ** (layers - 1 - k))


def rate(config: OptimizerConfig, peak: float, step: int, steps: int, warmup: int) -> float:
    """Learning rate of step `step`, from 0, of a phase of `steps`; `peak` is the phase's highest."""
    if step < warmup:
        return peak * (step + 1) / (warmup + 1)
    if config.curve == "constant":
        return peak
    left = (steps - step) / (steps - warmup)
    if config.curve == "linear":
        return peak * left
    return peak * 0.5 * (1 + math.cos(math.pi * (1 - left)))
