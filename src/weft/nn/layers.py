"""Selection of the body layer that a task uses."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from weft.foundation.errors import UserError

LayerChoice = int | Literal["mix"] | None
"""a layer's number (0 the embeddings, 1 the first layer, ...), "mix" for a learned mix of all, or None for the last"""


class LayerMix(nn.Module):
    """`sum_k softmax(w)_k h_k` over the embeddings and all layers; w is learned and initialized to 0 (the mean)."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(layers + 1))

    def forward(self, hidden: Sequence[Tensor]) -> Tensor:
        shares = self.weights.softmax(dim=0).to(hidden[0].dtype)
        return torch.stack([share * layer for share, layer in zip(shares, hidden, strict=True)]).sum(dim=0)


class OneLayer(nn.Module):
    """The hidden states of one layer."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def forward(self, hidden: Sequence[Tensor]) -> Tensor:
        return hidden[self.number]


def build_layer(choice: LayerChoice, layers: int, task: str) -> nn.Module:
    """Build the layer selection of a task for a body with this number of layers."""
    if choice == "mix":
        return LayerMix(layers)
    number = layers if choice is None else choice
    if not 0 <= number <= layers:
        raise UserError(f"tasks.{task}.layer: found {number}, expected 0 (the embeddings) to {layers} (the last layer)")
    return OneLayer(number)
