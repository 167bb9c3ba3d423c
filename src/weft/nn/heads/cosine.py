"""The angle between the two vectors: as it is, cut and stretched, or on a learnt scale."""

from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field, model_validator
from torch import Tensor, nn

from weft.nn.heads.base import Bounds, Head, HeadOptions, HeadShape


def cosine(first: Tensor, second: Tensor | None) -> Tensor:
    """[n, 1]"""
    assert second is not None, "the configs refuse a reading that gives one vector"
    return F.cosine_similarity(first, second, dim=1)[:, None]


class Cosine(Head):
    """`cos(u, v)`: no parameters, so the body alone must learn."""

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
    """`5 relu(cos(u, v))`: unrelated texts get 0, and the scale is that of the labels."""

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
    """`clip(a (cos(u, v) - 1) + 1, 0, 1)` with a learnt `a`: equal texts get 1, and a decides how fast it falls.

    `a = gain r`, with r the parameter that the optimizer sees: AdamW moves every parameter by about its rate, so `a`
    learns `gain` times as fast. With `units`, one linear layer, followed by ReLU unless `activation` is "none", maps
    both vectors before they are compared.
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
        assert second is not None, "the config refuses a reading that gives one vector"
        return (self.gain * self.a * (cosine(self.map(first), self.map(second)) - 1) + 1).clamp(0, 1)


class ScaledCosineConfig(HeadOptions):
    bounds: ClassVar[Bounds] = (0.0, 1.0)
    name: Literal["scaled-cosine"] = "scaled-cosine"
    start: float = Field(default=1.0, gt=0)
    """what `a` is at first; each task learns its own"""
    gain: float = Field(default=1.0, gt=0)
    """How many times as fast as other weights `a` learns. Defaults to 1."""
    units: int | None = Field(default=None, ge=1)
    """Outputs of a linear layer on each vector before the cosine. Defaults to none."""
    activation: Literal["relu", "none"] | None = None
    """What follows that layer. Defaults to relu."""

    @model_validator(mode="after")
    def _an_activation_needs_a_layer(self) -> "ScaledCosineConfig":
        if self.units is None and self.activation is not None:
            raise ValueError("`activation` follows the layer that `units` declares; give `units`, or leave it out")
        return self

    def build(self, shape: HeadShape) -> ScaledCosine:
        shape.require_pair(self.name)
        shape.require_one_output(self.name)
        return ScaledCosine(shape.width, self)
