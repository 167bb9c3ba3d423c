"""An LSTM that reads the tokens."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from weft.nn.body import Body
from weft.nn.pooling.base import Pooling, by_run
from weft.types import Encoded
from weft.variants import Config


class Lstm(Pooling):
    """The last state of an LSTM over a sequence's token states; of both directions, if asked for, side by side."""

    def __init__(self, width: int, size: int, bidirectional: bool) -> None:
        super().__init__(size * (2 if bidirectional else 1))
        self.lstm = nn.LSTM(width, size, batch_first=True, bidirectional=bidirectional)

    def forward(self, hidden: Tensor, encoded: Encoded) -> Tensor:
        # h_n is [directions, n, size]: each direction's state after its own last token
        return torch.cat([self.lstm(run)[1][0].transpose(0, 1).flatten(1) for run in by_run(hidden, encoded)])


class LstmConfig(Config):
    name: Literal["lstm"] = "lstm"
    size: int = Field(default=128, ge=1)
    """numbers in the LSTM's state"""
    bidirectional: bool = False
    """whether a second one reads from the end"""

    def build(self, body: Body) -> Lstm:
        return Lstm(body.shape.width, self.size, self.bidirectional)
