"""No pooling: one vector for each word."""

from typing import ClassVar, Literal

from torch import Tensor

from weft.bodies.body import Body
from weft.foundation.values import Encoded
from weft.nn.pooling.base import Pooling, PoolingOptions


class WordStates(Pooling):
    """`u_k = h_k`: the states of all tokens. The first token of a word stands for it."""

    keeps_tokens = True

    def forward(self, hidden: Tensor, encoded: Encoded) -> Tensor:  # noqa: ARG002
        return hidden

    def padded(self, hidden: Tensor, mask: Tensor) -> Tensor:  # noqa: ARG002
        return hidden


class WordsConfig(PoolingOptions):
    keeps_tokens: ClassVar[bool] = True
    name: Literal["words"] = "words"

    def build(self, body: Body) -> WordStates:
        return WordStates(body.shape.width)
