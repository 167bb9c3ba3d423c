"""Mean pooling over a sequence's tokens."""

from typing import Literal

import torch
from torch import Tensor

from weft.bodies.body import Body
from weft.foundation.values import Encoded
from weft.nn.pooling.base import Pooling, PoolingOptions


class Mean(Pooling):
    """`u = 1/l sum_k h_k` over all real tokens of a sequence, including [CLS] and [SEP]."""

    def forward(self, hidden: Tensor, encoded: Encoded) -> Tensor:
        n = len(encoded.lengths)
        total = hidden.new_zeros(n, hidden.shape[1]).index_add(0, encoded.owners, hidden)
        lengths = torch.tensor(encoded.lengths, dtype=hidden.dtype, device=hidden.device)
        return total / lengths[:, None]

    def padded(self, hidden: Tensor, mask: Tensor) -> Tensor:
        real = mask[:, :, None].to(hidden.dtype)
        return (hidden * real).sum(dim=1) / real.sum(dim=1)


class MeanPoolingConfig(PoolingOptions):
    name: Literal["mean"] = "mean"

    def build(self, body: Body) -> Mean:
        return Mean(body.shape.width)
