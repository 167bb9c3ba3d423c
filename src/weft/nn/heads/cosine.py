"""Cosine similarity of the two vectors: plain, rectified, or with a learned scale."""

from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field, model_validator
from torch import Tensor, nn

from weft.nn.heads.base import Bounds, Head, HeadOptions, HeadShape


def cosine(first: Tensor, second: Tensor | None) -> Tensor:
    """[n, 1]"""
    assert second is not None, "the configs reject readings with one vector"
    return F.cosine_similarity(first, second, dim=1)[:, None]


class Cosine(Head):
    """`cos(u, v)`: no parameters, so only the body is trained."""

    def forward(self, first: Tensor, second: Tensor | None) -> Tensor:
        return cosine(first, second)


class CosineConfig(HeadOptions):
    bounds: ClassVar[Bounds] = (-1.0, 1.0)
    name: Literal["cosine"] = "cosine"

    def build(self, shape: HeadShape) -> Cosine:
        shape.require_pair(self.name)
        shape.require_one_output(self.name)
        return Cosine(1)


class ReluCosine(Head):
    """`5 relu(cos(u, v))`: 0 for unrelated texts, 5 for equal texts."""

    def forward(self, first: Tensor, second: Tensor | None) -> Tensor:
        return 5 * cosine(first, second).relu()


class ReluCosineConfig(HeadOptions):
    bounds: ClassVar[Bounds] = (0.0, 5.0)
    name: Literal["relu-cosine"] = "relu-cosine"

    def build(self, shape: HeadShape) -> ReluCosine:
        shape.require_pair(self.name)
        shape.require_one_output(self.name)
        return ReluCosine(1)


class ScaledCosine(Head):
    """`clip(a (cos(u, v) - 1) + 1, 0, 1)` with a learned `a`: 1 for equal texts; `a` is the slope.

    `a = gain r`, with r the parameter that the optimizer updates: AdamW changes every parameter by about its learning
    rate, so `a` learns `gain` times as fast. With `units`, a linear layer maps both vectors before the cosine, followed
    by ReLU unless `activation` is "none".
    """

    def __init__(self, width: int, config: "ScaledCosineConfig") -> None:
        super().__init__(1)
        self.gain = config.gain
        self.a = nn.Parameter(torch.tensor(config.start / config.gain))
        layers: list[nn.Module] = [] if config.units is None else [nn.Linear(width, config.units)]
        if layers and config.activation != "none":
            layers.append(nn.ReLU())
        self.map = nn.Sequential(*layers)

    def forward(self, first: Tensor, second: Tensor | None) -> Tensor:
        assert second is not None, "the config rejects readings with one vector"
        return (self.gain * self.a * (cosine(self.map(first), self.map(second)) - 1) + 1).clamp(0, 1)


class ScaledCosineConfig(HeadOptions):
    bounds: ClassVar[Bounds] = (0.0, 1.0)
    name: Literal["scaled-cosine"] = "scaled-cosine"
    start: float = Field(default=1.0, gt=0)
    """Initial value of `a`. Each task learns its own `a`."""
    gain: float = Field(default=1.0, gt=0)
    """Learning speed of `a` relative to other weights."""
    units: int | None = Field(default=None, ge=1)
    """Outputs of a linear layer on each vector before the cosine. Defaults to no such layer."""
    activation: Literal["relu", "none"] | None = None
    """Activation after that layer. Defaults to relu."""

    @model_validator(mode="after")
    def _an_activation_needs_a_layer(self) -> "ScaledCosineConfig":
        if self.units is None and self.activation is not None:
            raise ValueError("`activation` needs the layer that `units` adds; set `units`, or leave `activation` out")
        return self

    def build(self, shape: HeadShape) -> ScaledCosine:
        shape.require_pair(self.name)
        shape.require_one_output(self.name)
        return ScaledCosine(shape.width, self)
