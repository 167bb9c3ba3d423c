"""CLS pooling: the state of the first token."""

from typing import Literal

from torch import Tensor

from weft.bodies.body import Body
from weft.foundation.values import Encoded
from weft.nn.pooling.base import Pooling, PoolingOptions


class Cls(Pooling):
    """`u = h_[CLS]`: the state of the first token."""

    first_only = True

    def forward(self, hidden: Tensor, encoded: Encoded) -> Tensor:
        return hidden[encoded.starts]

    def padded(self, hidden: Tensor, mask: Tensor) -> Tensor:  # noqa: ARG002 (the first token is always real)
        return hidden[:, 0]


class ClsConfig(PoolingOptions):
    name: Literal["cls"] = "cls"

    def build(self, body: Body) -> Cls:
        return Cls(body.shape.width)
