"""Max pooling over a sequence's tokens."""

from typing import Literal

import torch
from torch import Tensor

from weft.bodies.body import Body
from weft.foundation.values import Encoded
from weft.nn.pooling.base import Pooling, PoolingOptions, by_run


class Max(Pooling):
    """`u_d = max_k h_kd` over all real tokens of a sequence."""

    def forward(self, hidden: Tensor, encoded: Encoded) -> Tensor:
        return torch.cat([run.amax(dim=1) for run in by_run(hidden, encoded)])

    def padded(self, hidden: Tensor, mask: Tensor) -> Tensor:
        return hidden.masked_fill(mask[:, :, None] == 0, float("-inf")).amax(dim=1)


class MaxConfig(PoolingOptions):
    name: Literal["max"] = "max"

    def build(self, body: Body) -> Max:
        return Max(body.shape.width)
