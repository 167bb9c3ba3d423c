"""Bottleneck adapters: two small linear layers after the blocks of a layer."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from weft.bodies.adapters.base import BLOCKS, Adapter, AdapterOptions, LayerAdapter
from weft.bodies.shape import ACTIVATIONS, BodyShape

PLACEMENTS = {"houlsby": BLOCKS, "pfeiffer": ("feed-forward",)}
"""Placement -> the blocks that have an adapter."""


class Bottleneck(nn.Module):
    """`y + U f(D y)`; U and all biases are zero at the start, so that it starts as the identity."""

    def __init__(self, width: int, size: int, activation: str) -> None:
        super().__init__()
        self.down = nn.Linear(width, size)
        self.up = nn.Linear(size, width)
        self.activation = ACTIVATIONS[activation]
        nn.init.normal_(self.down.weight, std=0.02)
        for zero in (self.down.bias, self.up.weight, self.up.bias):
            nn.init.zeros_(zero)

    def forward(self, outputs: Tensor) -> Tensor:
        changed: Tensor = outputs + self.up(self.activation(self.down(outputs)))
        return changed


class BottleneckLayer(LayerAdapter):
    """A `Bottleneck` on the output of one block or of both, before the residual connection and LayerNorm.

    Houlsby et al., "Parameter-Efficient Transfer Learning for NLP", 2019: after both blocks. Pfeiffer et al.,
    "AdapterFusion", 2021: after the feed-forward block alone. Unlike in Houlsby's method, LayerNorms stay frozen, and
    the start is exactly the identity instead of close to it.
    """

    def __init__(self, config: "BottleneckConfig", shape: BodyShape) -> None:
        super().__init__()
        self.sites = frozenset(PLACEMENTS[config.placement])
        size = config.size or max(1, shape.width // config.reduction)
        for name in sorted(self.sites):
            self.add_module(name, Bottleneck(shape.width, size, config.activation))

    def block(self, name: str, outputs: Tensor) -> Tensor:
        changed: Tensor = self.get_submodule(name)(outputs)
        return changed


class BottleneckConfig(AdapterOptions):
    """Add two small linear layers with an activation between them after the blocks of each layer."""

    name: Literal["bottleneck"] = "bottleneck"
    placement: Literal["houlsby", "pfeiffer"] = "houlsby"
    """After attention and feed-forward (houlsby), or after feed-forward alone (pfeiffer)."""
    reduction: int = Field(default=16, ge=1)
    """The width of the body divided by the size of the bottleneck."""
    size: int | None = Field(default=None, ge=1)
    """Size of the bottleneck, in place of `reduction`."""
    activation: Literal["gelu", "relu", "silu"] = "gelu"
    """Activation between the two linear layers."""

    def build(self, shape: BodyShape, layers: Sequence[nn.Module]) -> Adapter:
        return Adapter([BottleneckLayer(self, shape) for _ in layers])
