"""AdamW, parameter groups and learning rate curves."""

import math
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import nn

from weft.foundation.config import Config
from weft.foundation.errors import UserError
from weft.tasks.network import Network, layer_of
from weft.training.trainable import TrainableConfig
from weft.weighting.base import Weighting

Share = Annotated[float, Field(ge=0, lt=1)]


class OptimizerConfig(Config):
    """AdamW, learning rates, gradient accumulation and precision."""

    lr: float = Field(default=2e-5, gt=0)
    """Peak learning rate."""
    head_lr: float | None = Field(default=None, gt=0)
    """Peak learning rate of the heads. Defaults to `lr`."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Weight decay on all weights except LayerNorms and biases."""
    decay_all: bool = False
    """Whether weight decay also applies to LayerNorms and biases."""
    betas: tuple[Share, Share] = (0.9, 0.999)
    """AdamW's decay rates of the running averages of the gradient and its square."""
    eps: float = Field(default=1e-8, gt=0)
    """AdamW's term in the denominator for numerical stability."""
    curve: Literal["linear", "cosine", "constant"] = "linear"
    """Learning rate curve after warm-up: linear and cosine decay to zero at the end of each phase."""
    warmup: int = Field(default=0, ge=0)
    """Steps of linear warm-up from zero, at the start of each phase."""
    clip: float | None = Field(default=None, gt=0)
    """Maximum norm of the gradient. Defaults to no clipping."""
    accumulate: int = Field(default=1, ge=1)
    """Gradient accumulation: forward passes of each task per optimizer step."""
    layer_decay: float = Field(default=1.0, gt=0, le=1)
    """Layer-wise learning rate decay: the learning rate of a layer relative to the layer above it. The embeddings are
    below the first layer."""
    layer_factors: tuple[Annotated[float, Field(ge=0)], ...] | None = None
    """Factor on the learning rate of each layer, first to last, in addition to `layer_decay`. Defaults to 1 for all
    layers."""
    precision: Literal["fp32", "fp64", "bf16", "fp16"] = "fp32"
    """fp32, fp64, or mixed precision: bf16 autocast, or fp16 with loss scaling (GPU only)."""
    gradient_checkpointing: bool = False
    """Whether to recompute each layer in the backward pass instead of storing its activations: less memory, about a
    third more time."""


def build_optimizer(
    network: Network, weighting: Weighting, config: OptimizerConfig, modes: list[TrainableConfig]
) -> torch.optim.AdamW:
    """Build a fused AdamW over all parameters that train in any phase, including those of the weighting.

    The learning rate of a group is `factor` times that of the phase or, if the group has a `peak`, the phase's share of
    that peak. Parameters that do not train in the current phase have no gradient, and AdamW skips them.
    """
    layers = len(network.body.layers)  # sets of weights: layers that share theirs count as one
    if config.layer_factors is not None and len(config.layer_factors) != layers:
        raise UserError(
            f"optimizer.layer_factors: found {len(config.layer_factors)} factors, but the body has {layers} layers"
        )
    groups: dict[tuple[float, float | None, bool], list[nn.Parameter]] = {}
    for name, parameter in network.named_parameters():
        if any(mode.trains(name) for mode in modes):
            decays = config.decay_all or parameter.ndim > 1  # not LayerNorms, biases and scalars
            peak = config.head_lr if name.startswith("tasks.") else None
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
    """Return the factor on the phase's learning rate for a parameter."""
    if name.startswith("body.embeddings."):
        return config.layer_decay**layers
    k = layer_of(name)
    if k is None:  # heads, and the pooler on top of the last layer
        return 1.0
    own = config.layer_factors[k] if config.layer_factors is not None else 1.0
    return float(own * config.layer_decay ** (layers - 1 - k))


def share_of_peak(curve: str, step: int, steps: int, warmup: int) -> float:
    """Return the learning rate as a share of its peak, at step `step` (from 0) of a phase of `steps` steps."""
    if step < warmup:
        return (step + 1) / (warmup + 1)
    if curve == "constant":
        return 1.0
    left = (steps - step) / (steps - warmup)
    return left if curve == "linear" else 0.5 * (1 + math.cos(math.pi * (1 - left)))
