"""minBERT, top to bottom.

The same weights run in two layouts. *Packed* is what training and prediction use: all sequences of a batch
lie end to end, so that linear layers see only real tokens, and attention works on sequences of equal length
together, so that it needs neither padding nor mask (`attention.py`). *Padded* is the ordinary `[n, longest]` layout
with a mask, for export. Only attention differs between the two, so a layer is told how to attend and knows no more.

Shapes: t tokens, n sequences, l positions, w width, h heads, d = w / h.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from weft.bodies.attention import Groups, attention
from weft.bodies.dropout import Dropout
from weft.bodies.lookup import TokenTable
from weft.foundation.values import Encoded

Attend = Callable[[Tensor, float], Tensor]
"""(projected queries, keys and values [..., 3w], dropout) -> context [..., w]"""

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_new": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "relu": F.relu,
}


@dataclass(frozen=True)
class BodyShape:
    """The numbers that fix a body; `weights.py` reads them from a checkpoint's config.json."""

    vocabulary: int = 30522
    width: int = 768
    layers: int = 12
    heads: int = 12
    inner: int = 3072
    positions: int = 512
    segments: int = 2
    norm_eps: float = 1e-12
    activation: str = "gelu"
    dropout: float = 0.1
    attention_dropout: float = 0.1


class Embeddings(nn.Module):
    """token + position + segment, normalized"""

    def __init__(self, shape: BodyShape) -> None:
        super().__init__()
        self.tokens = TokenTable(shape.vocabulary, shape.width)
        self.positions = nn.Embedding(shape.positions, shape.width)
        self.segments = nn.Embedding(shape.segments, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=shape.norm_eps)
        self.dropout = Dropout(shape.dropout)
        self.use_segments = True

    def forward(self, ids: Tensor, positions: Tensor, segments: Tensor) -> Tensor:
        types = segments if self.use_segments else torch.zeros_like(segments)
        total = self.tokens(ids) + self.positions(positions) + self.segments(types)
        embedded: Tensor = self.dropout(self.norm(total))
        return embedded


class Layer(nn.Module):
    """attention and feed-forward, each with a residual connection and a LayerNorm after it"""

    def __init__(self, shape: BodyShape) -> None:
        super().__init__()
        self.qkv = nn.Linear(shape.width, 3 * shape.width)
        self.attention_out = nn.Linear(shape.width, shape.width)
        self.attention_norm = nn.LayerNorm(shape.width, eps=shape.norm_eps)
        self.inner = nn.Linear(shape.width, shape.inner)
        self.outer = nn.Linear(shape.inner, shape.width)
        self.outer_norm = nn.LayerNorm(shape.width, eps=shape.norm_eps)
        self.activation = ACTIVATIONS[shape.activation]
        self.dropout = Dropout(shape.dropout)
        self.attention_dropout = shape.attention_dropout

    def forward(self, hidden: Tensor, attend: Attend, only: Tensor | None = None) -> Tensor:
        """The states of all tokens after this layer, or `only` of some."""
        context = attend(self.qkv(hidden), self.attention_dropout if self.training else 0.0)
        if only is not None:
            hidden, context = hidden.index_select(0, only), context.index_select(0, only)
        hidden = self.attention_norm(hidden + self.dropout(self.attention_out(context)))
        raised = self.outer(self.activation(self.inner(hidden)))
        normed: Tensor = self.outer_norm(hidden + self.dropout(raised))
        return normed


class Body(nn.Module):
    """Embeddings, layers and BERT's own pooler (a tanh layer on the first token)."""

    def __init__(self, shape: BodyShape) -> None:
        super().__init__()
        self.shape = shape
        self.embeddings = Embeddings(shape)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.pooler = nn.Linear(shape.width, shape.width)
        self.recompute = False
        """whether layers are computed again in the backward pass instead of being kept (less memory, more time)"""
        self.apply(_initialize)

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
        return self._layers(embedded, packed_attention(encoded, self.shape.heads), read)

    def forward(self, encoded: Encoded, read: Tensor | None = None) -> tuple[Tensor, ...]:
        return self.encode(self.embed(encoded), encoded, read)

    def padded(self, ids: Tensor, mask: Tensor, segments: Tensor) -> tuple[Tensor, ...]:
        """The same for `[n, l]` inputs, where `mask` is 1 for real tokens and 0 for padding: [n, l, w] each."""
        positions = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        embedded = self.embeddings(ids, positions, segments)
        return self._layers(embedded, padded_attention(mask, self.shape.heads))

    def _layers(self, hidden: Tensor, attend: Attend, read: Tensor | None = None) -> tuple[Tensor, ...]:
        outputs = [hidden]
        for number, layer in enumerate(self.layers, start=1):
            only = read if number == len(self.layers) else None
            if self.recompute and torch.is_grad_enabled():
                states = checkpoint(layer, outputs[-1], attend, only, use_reentrant=False)
            else:
                states = layer(outputs[-1], attend, only)
            outputs.append(states if only is None else states.new_zeros(hidden.shape).index_copy(0, only, states))
        return tuple(outputs)


def packed_attention(encoded: Encoded, heads: int) -> Attend:
    """Attention of every sequence to itself in `[t, 3w]`."""
    groups = Groups(encoded, heads)
    return lambda qkv, dropout: attention(qkv, groups, dropout)


def padded_attention(mask: Tensor, heads: int) -> Attend:
    """Attention in `[n, l, 3w]`; padding is never attended to."""
    visible = mask.bool()[:, None, None, :]

    def attend(qkv: Tensor, dropout: float) -> Tensor:
        n, length, _ = qkv.shape
        q, k, v = qkv.view(n, length, 3, heads, -1).permute(2, 0, 3, 1, 4)
        context = F.scaled_dot_product_attention(q, k, v, attn_mask=visible, dropout_p=dropout)
        return context.transpose(1, 2).reshape(n, length, -1)

    return attend


def _initialize(module: nn.Module) -> None:
    """BERT's own start: normal weights with deviation .02, zero biases."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)
