"""A body of any family: embeddings, layers, and optional modules of some families.

Shapes: t tokens, n sequences, l positions, w width.
"""

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from weft.bodies.adapted import AdaptedPass
from weft.bodies.layout import Packed, Padded, TokenLayout
from weft.bodies.registry import FAMILIES
from weft.bodies.shape import BodyShape
from weft.foundation.values import Encoded


class Body(nn.Module):
    """Embeddings, layers and, if the family has one, its pooler (a tanh layer on the first token)."""

    def __init__(self, shape: BodyShape) -> None:
        super().__init__()
        self.shape = shape
        self.family = FAMILIES[shape.model_type]
        self.embeddings = self.family.embeddings(shape)
        self.layers = nn.ModuleList(self.family.layers(shape))
        """One module per set of weights; a single module if all layers share their weights."""
        self.relative = self.family.relative(shape)
        self.final = self.family.final(shape)
        self.pooler = nn.Linear(shape.width, shape.width) if self.family.has_pooler else None
        self.recompute = False
        """Whether to use activation checkpointing: recompute layers in the backward pass (less memory, more time)."""
        self.apply(_initialize)

    @property
    def has_segments(self) -> bool:
        """Whether token types distinguish the two texts of a pair."""
        return self.shape.segments > 1

    def leave_segments_out(self) -> None:
        """Use token type 0 for all tokens, including the second text.

        The pretrained embedding of type 0 is still added: all texts were encoded with it.
        """
        self.embeddings.use_segments = False

    def embed(self, encoded: Encoded) -> Tensor:
        """Return the input of the first layer that is run, [t, w]: the embeddings, or stored states."""
        if encoded.states is not None:
            return encoded.states
        if not encoded.lengths:
            return self.embeddings.tokens.weight.new_zeros(0, self.shape.width)
        embedded: Tensor = self.embeddings(encoded.ids, encoded.positions, encoded.segments)
        return embedded

    def encode(
        self, embedded: Tensor, encoded: Encoded, read: Tensor | None = None, adapted: AdaptedPass | None = None
    ) -> tuple[Tensor, ...]:
        """Return layers + 1 tensors [t, w]: the embeddings, then the output of each layer.

        `read` holds the indices of the tokens whose last hidden state is used. The last state of all other tokens is
        zero. This saves most of a layer if the tasks use first tokens only. `adapted` are the adapters of the tokens.
        If `encoded` has stored states, its first `depth` layers are not run, and the tensors before them are empty.
        """
        if encoded.depth == self.shape.layers:
            return self._skipped(embedded, encoded.depth)
        return self._layers(embedded, Packed(encoded, self.shape.heads), read, adapted, encoded.depth)

    def states_at(self, encoded: Encoded, depth: int, adapted: AdaptedPass | None = None) -> Tensor:
        """Return the output [t, w] of layer `depth`, without running the layers above it."""
        return self._layers(self.embed(encoded), Packed(encoded, self.shape.heads), None, adapted, stop=depth)[-1]

    def forward(
        self, encoded: Encoded, read: Tensor | None = None, adapted: AdaptedPass | None = None
    ) -> tuple[Tensor, ...]:
        return self.encode(self.embed(encoded), encoded, read, adapted)

    def padded(
        self, ids: Tensor, mask: Tensor, segments: Tensor, adapted: AdaptedPass | None = None
    ) -> tuple[Tensor, ...]:
        """Like `forward`, for padded `[n, l]` inputs: return [n, l, w] tensors. `mask` is 0 for padding, else 1.

        `adapted` has one adapter, for all tokens.
        """
        layout = Padded(mask, self.shape.heads)
        return self._layers(self.embeddings(ids, layout.positions, segments), layout, None, adapted)

    @staticmethod
    def _skipped(states: Tensor, depth: int) -> tuple[Tensor, ...]:
        """The states after `depth` layers that were not run."""
        return (*[states.new_empty(0, states.shape[-1])] * depth, states)

    def _layers(
        self,
        hidden: Tensor,
        layout: TokenLayout,
        read: Tensor | None,
        adapted: AdaptedPass | None,
        start: int = 0,
        stop: int | None = None,
    ) -> tuple[Tensor, ...]:
        """Run the layers after number `start`, whose output is `hidden`, up to number `stop`, by default all."""
        adapted = adapted or AdaptedPass()
        if self.relative is not None:
            layout.shared = self.relative(layout)
        outputs = list(self._skipped(hidden, start))
        for number in range(start + 1, (self.shape.layers if stop is None else stop) + 1):
            weights = min(number, len(self.layers)) - 1
            layer, own = self.layers[weights], adapted.layer(weights)
            only = read if number == self.shape.layers else None
            if self.recompute and torch.is_grad_enabled():
                states = checkpoint(layer, outputs[-1], layout, only, own, use_reentrant=False)
            else:
                states = layer(outputs[-1], layout, only, own)
            if number == self.shape.layers and self.final is not None:
                states = self.final(states)
            outputs.append(states if only is None else states.new_zeros(hidden.shape).index_copy(0, only, states))
        return tuple(outputs)


def _initialize(module: nn.Module) -> None:
    """Initialize as BERT does: normal weights with standard deviation 0.02, zero biases."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
