"""A body of any family, top to bottom: embeddings, layers, and what some families have besides.

Shapes: t tokens, n sequences, l positions, w width.
"""

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from weft.bodies.layout import Packed, Padded, TokenLayout
from weft.bodies.registry import FAMILIES
from weft.bodies.shape import BodyShape
from weft.foundation.values import Encoded


class Body(nn.Module):
    """Embeddings, layers and, where the family has one, its own pooler (a tanh layer on the first token)."""

    def __init__(self, shape: BodyShape) -> None:
        super().__init__()
        self.shape = shape
        self.family = FAMILIES[shape.model_type]
        self.embeddings = self.family.embeddings(shape)
        self.layers = nn.ModuleList(self.family.layers(shape))
        """one module for each set of weights: a single one if all layers share theirs"""
        self.relative = self.family.relative(shape)
        self.final = self.family.final(shape)
        self.pooler = nn.Linear(shape.width, shape.width) if self.family.has_pooler else None
        self.recompute = False
        """whether layers are computed again in the backward pass instead of being kept (less memory, more time)"""
        self.apply(_initialize)

    @property
    def has_segments(self) -> bool:
        """Whether token types tell the two texts of a pair apart."""
        return self.shape.segments > 1

    def leave_segments_out(self) -> None:
        """Give every token type 0, of the second text too. Its pretrained vector stays: all texts were read with it."""
        self.embeddings.use_segments = False

    def embed(self, encoded: Encoded) -> Tensor:
        """[t, w], what enters the first layer"""
        embedded: Tensor = self.embeddings(encoded.ids, encoded.positions, encoded.segments)
        return embedded

    def encode(self, embedded: Tensor, encoded: Encoded, read: Tensor | None = None) -> tuple[Tensor, ...]:
        """layers + 1 tensors [t, w]: the embeddings, then each layer's output

        `read` names the tokens whose last state will be looked at. That of others is zero and costs nothing, which
        saves most of a layer where tasks look at first tokens only.
        """
        return self._layers(embedded, Packed(encoded, self.shape.heads), read)

    def forward(self, encoded: Encoded, read: Tensor | None = None) -> tuple[Tensor, ...]:
        return self.encode(self.embed(encoded), encoded, read)

    def padded(self, ids: Tensor, mask: Tensor, segments: Tensor) -> tuple[Tensor, ...]:
        """The same for `[n, l]` inputs, where `mask` is 1 for real tokens and 0 for padding: [n, l, w] each."""
        layout = Padded(mask, self.shape.heads)
        return self._layers(self.embeddings(ids, layout.positions, segments), layout)

    def _layers(self, hidden: Tensor, layout: TokenLayout, read: Tensor | None = None) -> tuple[Tensor, ...]:
        if self.relative is not None:
            layout.shared = self.relative(layout)
        outputs = [hidden]
        for number in range(1, self.shape.layers + 1):
            layer = self.layers[min(number, len(self.layers)) - 1]
            only = read if number == self.shape.layers else None
            if self.recompute and torch.is_grad_enabled():
                states = checkpoint(layer, outputs[-1], layout, only, use_reentrant=False)
            else:
                states = layer(outputs[-1], layout, only)
            if number == self.shape.layers and self.final is not None:
                states = self.final(states)
            outputs.append(states if only is None else states.new_zeros(hidden.shape).index_copy(0, only, states))
        return tuple(outputs)


def _initialize(module: nn.Module) -> None:
    """BERT's own start: normal weights with deviation .02, zero biases."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
