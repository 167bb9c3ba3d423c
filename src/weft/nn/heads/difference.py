"""A linear head on two vectors and their absolute difference."""

from typing import ClassVar, Literal

import torch
from torch import Tensor

from weft.nn.heads.base import Bounds, Head, HeadOptions, HeadShape, plain_linear


class Difference(Head):
    """`W (u, v, |u - v|) + b`. Reimers and Gurevych, "Sentence-BERT", 2019."""

    def __init__(self, shape: HeadShape) -> None:
        super().__init__(shape.outputs)
        self.dense = plain_linear(3 * shape.width, shape.outputs)

    def forward(self, first: Tensor, second: Tensor | None) -> Tensor:
        assert second is not None, "the config rejects readings with one vector"
        output: Tensor = self.dense(torch.cat([first, second, (first - second).abs()], dim=1))
        return output


class DifferenceConfig(HeadOptions):
    bounds: ClassVar[Bounds] = None
    name: Literal["difference"] = "difference"

    def build(self, shape: HeadShape) -> Difference:
        shape.require_pair(self.name)
        return Difference(shape)
