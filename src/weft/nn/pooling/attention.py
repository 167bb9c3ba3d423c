"""Attention pooling: a mean over tokens with learned weights."""

from typing import Literal

import torch
from torch import Tensor, nn

from weft.bodies.body import Body
from weft.foundation.values import Encoded
from weft.nn.pooling.base import Pooling, PoolingOptions, by_run


class Attention(Pooling):
    """`u = sum_k a_k h_k`, `a = softmax(q · h_k)` over all real tokens; q is learned, initially 0 (the mean)."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.query = nn.Parameter(torch.zeros(width))

    def forward(self, hidden: Tensor, encoded: Encoded) -> Tensor:
        vectors = []
        for run in by_run(hidden, encoded):
            shares = (run @ self.query.to(run.dtype)).softmax(dim=1)
            vectors.append((shares[:, :, None] * run).sum(dim=1))
        return torch.cat(vectors)

    def padded(self, hidden: Tensor, mask: Tensor) -> Tensor:
        shares = (hidden @ self.query).masked_fill(mask == 0, float("-inf")).softmax(dim=1)
        return (shares[:, :, None] * hidden).sum(dim=1)


class AttentionConfig(PoolingOptions):
    name: Literal["attention"] = "attention"

    def build(self, body: Body) -> Attention:
        return Attention(body.shape.width)
