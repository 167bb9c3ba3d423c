"""Projected attention layers (PALs): a narrow attention beside each layer."""

from collections.abc import Sequence
from typing import Literal

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from weft.bodies.adapters.base import Adapter, AdapterOptions, LayerAdapter
from weft.bodies.shape import BodyShape
from weft.foundation.errors import UserError


class PalLayer(LayerAdapter):
    """`gelu(V_D MH(V_E h) + b)` of a layer's input h, added to the layer's output before its last LayerNorm.

    Stickland and Murray, "BERT and PALs", 2019, as in the authors' code: MH is attention without an output matrix, and
    all layers of an adapter share V_E [s, w] and V_D [w, s]. V_D is zero at the start, where the authors draw it, so
    that training starts from the body as it is. The number of heads is that of the body.
    """

    sites = frozenset({"beside"})

    def __init__(self, encode: nn.Linear, decode: nn.Linear) -> None:
        super().__init__()
        self.qkv = nn.Linear(encode.out_features, 3 * encode.out_features)
        nn.init.normal_(self.qkv.weight, std=0.02)
        nn.init.zeros_(self.qkv.bias)
        self.narrow = encode.out_features
        self.encode = encode
        self.decode = decode

    def queries(self, hidden: Tensor) -> Tensor:
        qkv: Tensor = self.qkv(self.encode(hidden))
        return qkv

    def beside(self, context: Tensor) -> Tensor:
        return F.gelu(self.decode(context))


class PalConfig(AdapterOptions):
    """Add a narrow attention beside each layer."""

    name: Literal["pal"] = "pal"
    size: int | None = Field(default=None, ge=1)
    """Width of the attention, a multiple of the body's heads. Defaults to about a quarter of the body's width."""

    def build(self, shape: BodyShape, layers: Sequence[nn.Module]) -> Adapter:
        size = self.size or shape.heads * max(1, shape.width // shape.heads // 4)
        if size % shape.heads:
            raise UserError(f"adapter.size: found {size}, expected a multiple of the body's {shape.heads} heads")
        encode, decode = nn.Linear(shape.width, size), nn.Linear(size, shape.width)
        nn.init.normal_(encode.weight, std=0.02)
        for zero in (encode.bias, decode.weight, decode.bias):
            nn.init.zeros_(zero)
        return Adapter([PalLayer(encode, decode) for _ in layers], encode=encode, decode=decode)
