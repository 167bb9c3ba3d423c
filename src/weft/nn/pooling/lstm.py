"""LSTM pooling."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from weft.bodies.body import Body
from weft.foundation.values import Encoded
from weft.nn.pooling.base import Pooling, PoolingOptions, by_run


class Lstm(Pooling):
    """The last state of an LSTM over the token states; if bidirectional, both directions concatenated."""

    def __init__(self, width: int, size: int, bidirectional: bool) -> None:
        super().__init__(size * (2 if bidirectional else 1))
        self.lstm = nn.LSTM(width, size, batch_first=True, bidirectional=bidirectional)

    def forward(self, hidden: Tensor, encoded: Encoded) -> Tensor:
        # h_n is [directions, n, size]: each direction's state after the last token that it reads
        return torch.cat([self.lstm(run)[1][0].transpose(0, 1).flatten(1) for run in by_run(hidden, encoded)])

    def padded(self, hidden: Tensor, mask: Tensor) -> Tensor:
        lengths = mask.sum(dim=1)
        if torch.onnx.is_in_onnx_export():
            return self._onnx_states(hidden, lengths).transpose(0, 1).flatten(1)
        packed = pack_padded_sequence(hidden, lengths.cpu(), batch_first=True, enforce_sorted=False)
        last: Tensor = self.lstm(packed)[1][0]
        return last.transpose(0, 1).flatten(1)

    def _onnx_states(self, hidden: Tensor, lengths: Tensor) -> Tensor:
        """[directions, n, size] by ONNX's LSTM operator, which supports lengths; torch's tracer would unroll ours."""
        directions = [[_onnx_order(tensor) for tensor in weights] for weights in self.lstm.all_weights]
        inputs, states, input_biases, state_biases = (torch.stack(side) for side in zip(*directions, strict=True))
        (n, length, _), (count, size) = hidden.shape, (len(directions), self.lstm.hidden_size)
        _, last, _ = torch.onnx.ops.symbolic_multi_out(
            "LSTM",
            (hidden.transpose(0, 1), inputs, states, torch.cat([input_biases, state_biases], dim=1), lengths.int()),
            {"hidden_size": size, "direction": "bidirectional" if count == 2 else "forward"},
            dtypes=[hidden.dtype] * 3,
            shapes=[(length, count, n, size), (count, n, size), (count, n, size)],
        )
        return last


def _onnx_order(tensor: Tensor) -> Tensor:
    """Reorder gates: torch stacks input, forget, cell, output; ONNX expects input, output, forget, cell."""
    size = len(tensor) // 4
    return torch.cat([tensor[:size], tensor[3 * size :], tensor[size : 3 * size]])


class LstmConfig(PoolingOptions):
    name: Literal["lstm"] = "lstm"
    size: int = Field(default=128, ge=1)
    """Size of the hidden state."""
    bidirectional: bool = False
    """Whether to add a second LSTM that reads the tokens in reverse."""

    def build(self, body: Body) -> Lstm:
        return Lstm(body.shape.width, self.size, self.bidirectional)
