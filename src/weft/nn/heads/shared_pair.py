"""A pair layer that several tasks share, followed by a linear layer per task."""

from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from weft.nn.heads.base import Bounds, Head, HeadOptions, HeadShape, plain_linear
from weft.nn.heads.cosine import cosine


class SharedPair(Head):
    """`W_t leaky_relu(W (u, v, |u - v|, cos(u, v)))`: W is shared by all tasks of a group, W_t is per task.

    With `shared = false` each task has a separate W, which isolates the effect of sharing from the effect of the layer.
    """

    def __init__(self, shape: HeadShape, layer: nn.Linear) -> None:
        super().__init__(shape.outputs)
        self.layer = layer
        self.dense = plain_linear(layer.out_features, shape.outputs)

    def forward(self, first: Tensor, second: Tensor | None) -> Tensor:
        assert second is not None, "the config rejects readings with one vector"
        pair = torch.cat([first, second, (first - second).abs(), cosine(first, second)], dim=1)
        output: Tensor = self.dense(F.leaky_relu(self.layer(pair)))
        return output


class SharedPairConfig(HeadOptions):
    bounds: ClassVar[Bounds] = None
    name: Literal["shared-pair"] = "shared-pair"
    size: int = Field(default=384, ge=1)
    """Outputs of the shared layer."""
    group: str = "pair"
    """Tasks with the same group and size share one layer."""
    shared: bool = True
    """Whether the layer is shared. With false, each task has a separate layer of the same shape."""

    def build(self, shape: HeadShape) -> SharedPair:
        shape.require_pair(self.name)
        layer: nn.Module = nn.Linear(3 * shape.width + 1, self.size)
        if self.shared:
            layer = shape.shared.setdefault(f"shared-pair/{self.group}/{self.size}/{shape.width}", layer)
        assert isinstance(layer, nn.Linear)
        return SharedPair(shape, layer)
