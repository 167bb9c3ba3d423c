"""Trainable parameters: all, only heads and adapters, or selected layers."""

import re
from typing import Annotated, Literal

from pydantic import Field

from weft.foundation.config import NAME_ALONE, Config
from weft.foundation.errors import UserError
from weft.tasks.network import Network


class FullConfig(Config):
    """Train everything: the body, the heads and adapters."""

    name: Literal["full"] = "full"
    embeddings: bool = True
    """Whether to train the embeddings."""

    def trains(self, parameter: str) -> bool:
        return self.embeddings or not parameter.startswith("body.embeddings.")

    def check(self, layers: int) -> None:
        """Accept any number of layers."""


class FrozenConfig(Config):
    """Train only the heads and, if the recipe has one, the adapter; the body is frozen."""

    name: Literal["frozen"] = "frozen"
    adapters: bool = True
    """Whether to train the adapters."""

    def trains(self, parameter: str) -> bool:
        return not parameter.startswith("body.") and (self.adapters or not parameter.startswith("adapter"))

    def check(self, layers: int) -> None:
        """Accept any number of layers."""


class LayersConfig(Config):
    """Train selected layers, counted from 0, heads and adapters; the rest of the body, with its pooler, is frozen."""

    name: Literal["layers"] = "layers"
    layers: tuple[int, ...] = Field(min_length=1)
    """Layers to train."""
    embeddings: bool = False
    """Whether to train the embeddings."""

    def trains(self, parameter: str) -> bool:
        if parameter.startswith("body.embeddings."):
            return self.embeddings
        layer = re.match(r"body\.layers\.(\d+)\.", parameter)
        return int(layer[1]) in self.layers if layer else not parameter.startswith("body.")

    def check(self, layers: int) -> None:
        wrong = [k for k in self.layers if not 0 <= k < layers]
        if wrong:
            raise UserError(f"trainable.layers: found {wrong[0]}, but the body has layers 0 to {layers - 1}")


TrainableConfig = Annotated[FullConfig | FrozenConfig | LayersConfig, Field(discriminator="name"), NAME_ALONE]
"""The registry: a recipe's `trainable` is one of these."""


def set_trainable(network: Network, mode: TrainableConfig) -> None:
    """Set `requires_grad` of all parameters."""
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(mode.trains(name))
