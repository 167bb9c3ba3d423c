"""The plain head."""

from typing import Literal

import torch
from torch import Tensor, nn

from weft.nn.heads.base import Head, HeadShape
from weft.variants import Config


class Linear(Head):
    """`W u + b` for one vector, `W (u, v) + b` for two."""

    def __init__(self, shape: HeadShape) -> None:
        super().__init__(shape.outputs)
        self.dense = nn.Linear(shape.width * (2 if shape.pair else 1), shape.outputs)
        nn.init.normal_(self.dense.weight, std=0.02)
        nn.init.zeros_(self.dense.bias)

    def forward(self, first: Tensor, second: Tensor | None) -> Tensor:
        joined = first if second is None else torch.cat([first, second], dim=1)
        output: Tensor = self.dense(joined)
        return output


class LinearConfig(Config):
    name: Literal["linear"] = "linear"

    def build(self, shape: HeadShape) -> Linear:
        return Linear(shape)
