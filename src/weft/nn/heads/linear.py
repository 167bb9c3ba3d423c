"""A linear head."""

from typing import ClassVar, Literal

from torch import Tensor

from weft.nn.heads.base import Bounds, Head, HeadOptions, HeadShape, joined, plain_linear


class Linear(Head):
    """`W u + b` for one vector, `W (u, v) + b` for two."""

    def __init__(self, shape: HeadShape) -> None:
        super().__init__(shape.outputs)
        self.dense = plain_linear(shape.width * (2 if shape.pair else 1), shape.outputs)

    def forward(self, first: Tensor, second: Tensor | None) -> Tensor:
        output: Tensor = self.dense(joined(first, second))
        return output


class LinearConfig(HeadOptions):
    bounds: ClassVar[Bounds] = None
    name: Literal["linear"] = "linear"

    def build(self, shape: HeadShape) -> Linear:
        return Linear(shape)
