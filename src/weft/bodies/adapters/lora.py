"""LoRA: low-rank updates of a layer's weight matrices."""

import math
from collections.abc import Sequence
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from pydantic import Field, field_validator
from torch import Tensor, nn

from weft.bodies.adapters.base import MATRICES, Adapter, AdapterOptions, LayerAdapter, linear_module
from weft.bodies.dropout import Dropout
from weft.bodies.shape import BodyShape

Matrix = Literal["query", "key", "value", "attention-output", "intermediate", "output"]


class LowRank(nn.Module):
    """The factors of one update: `a` [r, in] is drawn, `b` [out, r] is zero at the start."""

    def __init__(self, inputs: int, outputs: int, rank: int) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.empty(rank, inputs))
        self.b = nn.Parameter(torch.empty(outputs, rank))
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))
        nn.init.zeros_(self.b)


class LoraLayer(LayerAdapter):
    """`W x + b` becomes `W x + b + alpha / r B A dropout(x)` for the chosen matrices W of one layer.

    Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", 2022. Matrices that a body keeps stacked (query,
    key and value) have separate factors, as if they were separate.
    """

    def __init__(self, config: "LoraConfig", layer: nn.Module) -> None:
        super().__init__()
        self.scale = config.scale
        self.dropout = Dropout(config.dropout)
        chosen = {name: [matrix for matrix in own if matrix in config.chosen] for name, own in MATRICES.items()}
        self.sites = frozenset(name for name, matrices in chosen.items() if matrices)
        for name in sorted(self.sites):
            module = linear_module(layer, name)
            for matrix in chosen[name]:
                outputs = module.out_features // len(MATRICES[name])
                self.add_module(matrix, LowRank(module.in_features, outputs, config.rank))

    def linear(self, module: str, inputs: Tensor, outputs: Tensor) -> Tensor:
        a, b = self.factors(module)
        lowered = F.linear(self.dropout(inputs), a)
        if outputs.ndim == 2:
            return torch.addmm(outputs, lowered, b.T, alpha=self.scale)
        return outputs + self.scale * F.linear(lowered, b)

    def factors(self, module: str) -> tuple[Tensor, Tensor]:
        """Return A and B of the update of a whole linear module, `scale B A`: B is block diagonal in its matrices."""
        pairs = self.separate(module)
        return torch.cat([a for a, _ in pairs]), torch.block_diag(*(b for _, b in pairs))

    def separate(self, module: str) -> list[tuple[Tensor, Tensor]]:
        """Return A and B of each matrix in a linear module; of rank 0 for a matrix that is not adapted."""
        own = [getattr(self, matrix, None) for matrix in MATRICES[module]]
        found = next(one for one in own if isinstance(one, LowRank))
        nothing = (found.a[:0], found.b[:, :0])
        return [(one.a, one.b) if isinstance(one, LowRank) else nothing for one in own]


class Lora(Adapter):
    """A `LoraLayer` for each set of weights."""

    can_merge = True

    def __init__(self, config: "LoraConfig", layers: Sequence[nn.Module]) -> None:
        super().__init__([LoraLayer(config, layer) for layer in layers])
        self.config = config

    @torch.no_grad()
    def merge(self, layers: Sequence[nn.Module]) -> None:
        for own, layer in zip(self.layers, layers, strict=True):
            assert isinstance(own, LoraLayer)
            for name in sorted(own.sites):
                a, b = own.factors(name)
                linear_module(layer, name).weight.add_(b @ a, alpha=own.scale)


class LoraConfig(AdapterOptions):
    """Add `alpha / rank B A` to weight matrices."""

    name: Literal["lora"] = "lora"
    rank: int = Field(default=8, ge=1)
    """Rank r of the updates."""
    alpha: float = Field(default=8.0, gt=0)
    """The updates are multiplied by `alpha / rank`."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout on the input of the updates."""
    matrices: Literal["all"] | tuple[Matrix, ...] = ("query", "value")
    """Matrices that are adapted: query, key, value, attention-output, intermediate, output, or "all"."""

    @field_validator("matrices")
    @classmethod
    def _each_once(cls, matrices: Literal["all"] | tuple[Matrix, ...]) -> Literal["all"] | tuple[Matrix, ...]:
        if matrices != "all" and (not matrices or len(set(matrices)) < len(matrices)):
            raise ValueError(f"found {list(matrices)}, expected at least one matrix, each once")
        return matrices

    @property
    def scale(self) -> float:
        return self.alpha / self.rank

    @property
    def chosen(self) -> tuple[str, ...]:
        """Names of the adapted matrices."""
        return get_args(Matrix) if self.matrices == "all" else self.matrices

    def build(self, shape: BodyShape, layers: Sequence[nn.Module]) -> Lora:  # noqa: ARG002 -- sizes are in the layers
        return Lora(self, layers)
