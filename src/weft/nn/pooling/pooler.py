"""The body's own pooler, if its family has one."""

from typing import Literal

import torch
from torch import Tensor

from weft.bodies.body import Body
from weft.foundation.errors import UserError
from weft.foundation.values import Encoded
from weft.nn.pooling.base import Pooling, PoolingOptions


class Pooler(Pooling):
    """`u = tanh(W h_[CLS] + b)` with W and b of the body, shared by all tasks that use it."""

    first_only = True

    def __init__(self, body: Body) -> None:
        super().__init__(body.shape.width)
        if body.pooler is None:
            raise UserError(
                f'pooling = "pooler": the body is a {body.family.title}, which has no pooler of its own; '
                'use "cls", "mean" or another pooling'
            )
        self.dense = body.pooler

    def forward(self, hidden: Tensor, encoded: Encoded) -> Tensor:
        return torch.tanh(self.dense(hidden[encoded.starts]))

    def padded(self, hidden: Tensor, mask: Tensor) -> Tensor:  # noqa: ARG002 (the first token is always real)
        return torch.tanh(self.dense(hidden[:, 0]))


class PoolerConfig(PoolingOptions):
    name: Literal["pooler"] = "pooler"

    def build(self, body: Body) -> Pooler:
        return Pooler(body)
