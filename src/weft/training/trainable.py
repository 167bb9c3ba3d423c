"""Trainable parameters: all, only heads and adapters, or selected layers."""

import re
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from torch import nn

from weft.foundation.config import NAME_ALONE, Config
from weft.foundation.errors import UserError
from weft.tasks.network import Network


class FullConfig(Config):
    """Train everything: the body, the heads and adapters."""

    name: Literal["full"] = "full"
    dropout: ClassVar[bool] = True
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
    dropout: bool = False
    """Whether the frozen body uses `body_dropout` in training. Its outputs then differ from step to step and are
    computed at every step."""

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
    dropout: bool = False
    """Whether the embeddings and layers below the first trained layer use `body_dropout` in training. Their outputs
    then differ from step to step and are computed at every step."""

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
    """Set `requires_grad` of all parameters, and which of the lowest layers are settled: frozen, without dropout."""
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(mode.trains(name))
    network.settled = 0 if mode.dropout else _frozen_layers(network)
    network.train(network.training)


def _frozen_layers(network: Network) -> int:
    """Count the lowest layers of the body that nothing below or in them trains, adapters included."""
    body = network.body
    adapters = [own for own in (network.adapter, *network.adapters.values()) if own is not None]
    shared = [p for own in adapters for name, p in own.named_parameters() if not name.startswith("layers.")]
    if _trains(body.embeddings, body.relative) or any(p.requires_grad for p in shared):
        return 0
    for number in range(1, body.shape.layers + 1):
        weights = min(number, len(body.layers)) - 1
        own = [adapter.get_submodule(f"layers.{weights}") for adapter in adapters]
        if _trains(body.layers[weights], body.final if number == body.shape.layers else None, *own):
            return number - 1
    return body.shape.layers


def _trains(*modules: nn.Module | None) -> bool:
    return any(p.requires_grad for module in modules if module is not None for p in module.parameters())
