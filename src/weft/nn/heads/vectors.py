"""The vectors themselves, scaled to unit length."""

from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from weft.nn.heads.base import Bounds, Head, HeadOptions, HeadShape


class UnitVectors(Head):
    """`u / |u|` of every text of a row, stacked to [n, texts, width]: no parameters, so only the body is trained."""

    def forward(self, first: Tensor, second: Tensor | None, *negatives: Tensor) -> Tensor:
        assert second is not None, "the config rejects readings with one vector"
        return F.normalize(torch.stack([first, second, *negatives], dim=1), dim=2)


class UnitVectorsConfig(HeadOptions):
    bounds: ClassVar[Bounds] = (-1.0, 1.0)
    gives_vectors: ClassVar[bool] = True
    name: Literal["vectors"] = "vectors"

    def build(self, shape: HeadShape) -> UnitVectors:
        shape.require_pair(self.name)
        return UnitVectors(shape.outputs)
