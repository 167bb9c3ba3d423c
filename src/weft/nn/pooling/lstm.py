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

    def padded(self, hidden: Tensor, mask: Tensor) -> Tensor:
        lengths = mask.sum(dim=1)[:, None]
        places = torch.arange(mask.shape[1], device=mask.device)[None]
        backwards = (lengths - 1 - places).clamp(min=0)  # each sequence turned round inside its own length
        sides = [hidden, torch.take_along_dim(hidden, backwards[:, :, None], dim=1)]
        directions = 2 if self.lstm.bidirectional else 1
        states = [self._states(sides[k], k) for k in range(directions)]
        # what a state after the last real token has read is the sequence and no padding
        return torch.cat([torch.take_along_dim(s, lengths[:, :, None] - 1, dim=1)[:, 0] for s in states], dim=1)

    def _states(self, hidden: Tensor, direction: int) -> Tensor:
        """[n, l, size] by the weights of one direction, read from the left"""
        weights = tuple(self.lstm.all_weights[direction])
        start = hidden.new_zeros(1, hidden.shape[0], self.lstm.hidden_size)
        states: Tensor = torch.lstm(hidden, (start, start), weights, True, 1, 0.0, False, False, True)[0]
        return states


class LstmConfig(Config):
    name: Literal["lstm"] = "lstm"
    size: int = Field(default=128, ge=1)
    """numbers in the LSTM's state"""
    bidirectional: bool = False
    """whether a second one reads from the end"""

    def build(self, body: Body) -> Lstm:
        return Lstm(body.shape.width, self.size, self.bidirectional)
