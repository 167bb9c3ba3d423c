"""AdamW, which parameters move how fast, and how the rate goes over time."""

import math
import re
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import nn

from weft.foundation.config import Config
from weft.foundation.errors import UserError
from weft.tasks.network import Network
from weft.training.trainable import TrainableConfig
from weft.weighting.base import Weighting

Share = Annotated[float, Field(ge=0, lt=1)]


class OptimizerConfig(Config):
    lr: float = Field(default=2e-5, gt=0)
    """highest learning rate"""
    head_lr: float | None = Field(default=None, gt=0)
    """the heads' own highest rate; `lr` unless said"""
    weight_decay: float = Field(default=0.0, ge=0)
    """pull towards zero at each step, on all weights but LayerNorms and biases"""
    decay_all: bool = False
    """Whether weight decay acts on LayerNorms and biases too. Defaults to false."""
    betas: tuple[Share, Share] = (0.9, 0.999)
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
    layer_factors: tuple[Annotated[float, Field(ge=0)], ...] | None = None
    """a factor on the rate of each layer, first to last; layer_decay is applied too"""
    precision: Literal["fp32", "fp64", "bf16", "fp16"] = "fp32"
    """fp32, fp64, or mixed: bf16 autocast, or fp16 with loss scaling (GPU only)"""
    gradient_checkpointing: bool = False
    """compute each layer again in the backward pass instead of keeping it: less memory, a third more time"""


def build_optimizer(
    network: Network, weighting: Weighting, config: OptimizerConfig, modes: list[TrainableConfig]
) -> torch.optim.AdamW:
    """Fused AdamW over all that trains in some phase, the learnt weights of losses too.

    A group moves at a `factor` of the phase's rate or, where it has a `peak` of its own, at the phase's share of that.
    Parameters that do not train in the present phase have no gradient, and AdamW leaves what has no gradient alone.
    """
    layers = len(network.body.layers)  # sets of weights: layers that share theirs count as one
    if config.layer_factors is not None and len(config.layer_factors) != layers:
        raise UserError(
            f"optimizer.layer_factors: found {len(config.layer_factors)} factors, but the body has {layers} layers"
        )
    groups: dict[tuple[float, float | None, bool], list[nn.Parameter]] = {}
    for name, parameter in network.named_parameters():
        if any(mode.trains(name) for mode in modes):
            decays = config.decay_all or parameter.ndim > 1  # LayerNorms, biases and single learnt numbers do not
            peak = None if name.startswith("body.") else config.head_lr
            groups.setdefault((rate_factor(name, config, layers), peak, decays), []).append(parameter)
    if not groups:
        raise UserError("trainable: nothing is left to train; the body is frozen and the heads have no weights")
    for parameter in weighting.parameters():
        groups.setdefault((1.0, weighting.lr, False), []).append(parameter)
    settings = [
        {"params": own, "factor": factor, "peak": peak, "weight_decay": config.weight_decay if decays else 0.0}
        for (factor, peak, decays), own in groups.items()
    ]
    return torch.optim.AdamW(settings, lr=config.lr, betas=config.betas, eps=config.eps, fused=True)


def rate_factor(name: str, config: OptimizerConfig, layers: int) -> float:
    """By what a parameter's rate differs from that of its phase."""
    if name.startswith("body.embeddings."):
        return config.layer_decay**layers
    layer = re.match(r"body\.layers\.(\d+)\.", name)
    if layer is None:  # the pooler stands on top of the last layer
        return 1.0
    k = int(layer[1])
    own = config.layer_factors[k] if config.layer_factors is not None else 1.0
    return float(own * config.layer_decay ** (layers - 1 - k))


def share_of_peak(curve: str, step: int, steps: int, warmup: int) -> float:
    """What part of the highest rate step `step`, from 0, of a phase of `steps` moves at."""
    if step < warmup:
        return (step + 1) / (warmup + 1)
    if curve == "constant":
        return 1.0
    left = (steps - step) / (steps - warmup)
    return left if curve == "linear" else 0.5 * (1 + math.cos(math.pi * (1 - left)))
