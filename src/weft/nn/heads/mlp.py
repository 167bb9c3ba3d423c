"""Heads with hidden layers."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field
from torch import Tensor, nn

from weft.bodies.dropout import Dropout
from weft.nn.heads.base import Bounds, Head, HeadOptions, HeadShape, joined, plain_linear


class Mlp(Head):
    """`W_k relu(... relu(W_1 x + b_1) ...) + b_k` on `x = u` or `(u, v)`, dropout after each hidden layer."""

    def __init__(self, shape: HeadShape, sizes: tuple[int, ...], dropout: float) -> None:
        super().__init__(shape.outputs)
        inputs = shape.width * (2 if shape.pair else 1)
        layers: list[nn.Module] = []
        for size in sizes:
            layers += [nn.Linear(inputs, size), nn.ReLU(), Dropout(dropout)]
            inputs = size
        self.hidden = nn.Sequential(*layers)
        self.dense = plain_linear(inputs, shape.outputs)

    def forward(self, first: Tensor, second: Tensor | None) -> Tensor:
        output: Tensor = self.dense(self.hidden(joined(first, second)))
        return output


class MlpConfig(HeadOptions):
    bounds: ClassVar[Bounds] = None
    name: Literal["mlp"] = "mlp"
    sizes: tuple[Annotated[int, Field(ge=1)], ...] = Field(default=(256,), min_length=1)
    """Units of each hidden layer, first to last."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout after each hidden layer."""

    def build(self, shape: HeadShape) -> Mlp:
        return Mlp(shape, self.sizes, self.dropout)


class HiddenConfig(HeadOptions):
    """An MLP with one hidden layer."""

    bounds: ClassVar[Bounds] = None
    name: Literal["hidden"] = "hidden"
    units: int = Field(default=120, ge=1)
    """Units of the hidden layer."""

    def build(self, shape: HeadShape) -> Mlp:
        return Mlp(shape, (self.units,), 0.0)
