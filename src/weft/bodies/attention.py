"""Self-attention for packed sequences.

Sequences of equal length form a group, regardless of their order in the batch. Within a group, attention is a few
batched matrix products that need neither padding nor a mask. One gather reorders all tokens by group and another one
restores their order. Operations that do not depend on group boundaries (dropout) run once over all groups.

A family can add a bias to the scores of each group: a window, a table of relative positions, or a term that depends
on queries and keys.

Shapes: t tokens, h heads, d dimensions per head; a group has b = sequences x heads blocks of length l.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from weft.bodies.dropout import kept
from weft.foundation.values import Encoded

LONG = 512
"""Length from which torch's fused kernel is used on a CPU too, without dropout: it stores no whole [l, l] matrix."""
Bias = Callable[[int, Tensor, Tensor], Tensor | None]
"""(index of the group, its queries and keys `[n, h, l, d]`) -> bias added to its scores, broadcastable to
`[n, h, l, l]`, or None for no bias."""


def attention(
    qkv: Tensor, groups: "Groups", dropout: float, bias: Bias | None = None, scale: float | None = None
) -> Tensor:
    """Map queries, keys and values `[t, 3 h d]` to the context `[t, h d]`. `scale` defaults to `d ** -0.5`."""
    parts: Tensor = _Enter.apply(qkv, groups)  # type: ignore[no-untyped-call]
    queries, keys, values = map(groups.blocks, parts)
    scale = parts.shape[2] ** -0.5 if scale is None else scale
    added: list[Tensor | None] = [None] * len(queries)
    if bias is not None:
        for number, (q, k) in enumerate(zip(queries, keys, strict=True)):
            own = bias(number, groups.by_head(q), groups.by_head(k))
            added[number] = None if own is None else own.to(qkv.dtype)
    context: Tensor
    if qkv.device.type == "cpu" and (dropout or groups.sizes[-1][1] < LONG):
        context = _OnCpu.apply(parts, groups, dropout, scale, *added)  # type: ignore[no-untyped-call]
    else:
        blocks = zip(queries, keys, values, added, strict=True)
        contexts = [
            F.scaled_dot_product_attention(
                groups.by_head(q), groups.by_head(k), groups.by_head(v), own, dropout, scale=scale
            )
            for q, k, v, own in blocks
        ]
        context = torch.cat([context.flatten(0, 2) for context in contexts])[None]
    left: Tensor = _Leave.apply(context, groups)  # type: ignore[no-untyped-call]
    return left


class Groups:
    """Index that reorders the heads of all tokens so that sequences of equal length are adjacent."""

    def __init__(self, encoded: Encoded, heads: int) -> None:
        lengths = np.array(encoded.lengths)
        starts = lengths.cumsum() - lengths
        self.heads = heads
        self.sizes: list[tuple[int, int]] = []
        """(b, l) of each group."""
        self.starts: list[NDArray[np.int64]] = []
        """Index of the first token of each sequence in each group."""
        rows = []
        for length in np.unique(lengths):
            first = starts[lengths == length]
            self.starts.append(first)
            self.sizes.append((len(first) * heads, int(length)))
            tokens = first[:, None, None] + np.arange(length)  # [sequences, 1, l]
            rows.append((tokens * heads + np.arange(heads)[:, None]).ravel())
        self._rows: NDArray[np.int64] = np.concatenate(rows)
        self._device = encoded.ids.device
        self._ways: dict[int, tuple[Tensor, Tensor]] = {}
        self.squares = [b * length * length for b, length in self.sizes]
        """Number of attention weights in each group."""

    def enter(self, packed: Tensor, parts: int) -> Tensor:
        """Reorder `[t, parts h d]` to `[parts, t h, d]`, in group order: sequence, head, position."""
        width = packed.shape[1] // parts // self.heads
        return packed.reshape(-1, width).index_select(0, self._way(parts)[0]).view(parts, -1, width)

    def leave(self, grouped: Tensor) -> Tensor:
        """Invert `enter`."""
        parts, rows, width = grouped.shape
        return grouped.view(-1, width).index_select(0, self._way(parts)[1]).view(rows // self.heads, -1)

    def blocks(self, rows: Tensor) -> list[Tensor]:
        """Split `[t h, d]` into one `[b, l, d]` per group."""
        pieces = rows.split([b * length for b, length in self.sizes])
        return [piece.view(b, length, -1) for piece, (b, length) in zip(pieces, self.sizes, strict=True)]

    def by_head(self, block: Tensor) -> Tensor:
        """Reshape `[b, l, ...]` to `[sequences, heads, l, ...]`."""
        return block.view(-1, self.heads, *block.shape[1:])

    def weights(self, flat: Tensor) -> list[Tensor]:
        """Split a flat tensor of all attention weights into one `[b, l, l]` per group."""
        pieces = flat.split(self.squares)
        return [piece.view(b, length, length) for piece, (b, length) in zip(pieces, self.sizes, strict=True)]

    def _way(self, parts: int) -> tuple[Tensor, Tensor]:
        """Return the row indices that map to group order, and their inverse."""
        if parts not in self._ways:
            tokens, heads = np.divmod(self._rows, self.heads)
            way = np.concatenate([(tokens * parts + part) * self.heads + heads for part in range(parts)])
            back = np.empty_like(way)
            back[way] = np.arange(len(way))
            self._ways[parts] = (torch.from_numpy(way).to(self._device), torch.from_numpy(back).to(self._device))
        return self._ways[parts]


class _Enter(torch.autograd.Function):
    """`Groups.enter` with `Groups.leave` as its gradient: autograd would accumulate rows one by one."""

    @staticmethod
    def forward(ctx: Any, qkv: Tensor, groups: Groups) -> Tensor:
        ctx.groups = groups
        return groups.enter(qkv, 3)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.groups.leave(gradient), None


class _Leave(torch.autograd.Function):
    """`Groups.leave` for one part, with `Groups.enter` as its gradient."""

    @staticmethod
    def forward(ctx: Any, context: Tensor, groups: Groups) -> Tensor:
        ctx.groups = groups
        return groups.leave(context)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.groups.enter(gradient, 1), None


class _OnCpu(torch.autograd.Function):
    """Attention on a CPU with an explicit backward pass.

    torch's fused kernel does not support dropout of attention weights on a CPU, and autograd's overhead for hundreds of
    small products exceeds the cost of the products.
    """

    @staticmethod
    def forward(ctx: Any, parts: Tensor, groups: Groups, dropout: float, scale: float, *added: Tensor | None) -> Tensor:
        queries, keys, values = map(groups.blocks, parts)
        scores, shares = parts.new_empty(2, sum(groups.squares))
        for q, k, own, score, share in zip(
            queries, keys, added, groups.weights(scores), groups.weights(shares), strict=True
        ):
            torch.baddbmm(score, q, k.transpose(1, 2), beta=0, alpha=scale, out=score)
            if own is not None:
                groups.by_head(score).add_(own)
            torch.ops.aten._softmax.out(score, -1, False, out=share)
        mask = kept(shares, dropout) if dropout else None
        dropped = shares if mask is None else torch.mul(shares, mask, out=scores)
        context = torch.empty_like(parts[:1])
        for share, v, out in zip(groups.weights(dropped), values, groups.blocks(context[0]), strict=True):
            torch.bmm(share, v, out=out)
        ctx.save_for_backward(parts, shares, mask)
        ctx.groups, ctx.scale = groups, scale
        ctx.added = [None if own is None else own.shape for own in added]
        return context

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        parts, shares, mask = ctx.saved_tensors
        groups: Groups = ctx.groups
        queries, keys, values = map(groups.blocks, parts)
        onward = torch.empty_like(parts)
        to_queries, to_keys, to_values = map(groups.blocks, onward)
        context = groups.blocks(gradient[0])
        dropped = groups.weights(shares if mask is None else shares * mask)
        to_shares = torch.empty_like(shares)
        for share, v, g, to_v, to_share in zip(
            dropped, values, context, to_values, groups.weights(to_shares), strict=True
        ):
            torch.bmm(share.transpose(1, 2), g, out=to_v)
            torch.bmm(g, v.transpose(1, 2), out=to_share)
        if mask is not None:
            to_shares.mul_(mask)
        to_scores = torch.empty_like(shares)
        for q, k, share, to_share, to_score, to_q, to_k in zip(
            queries,
            keys,
            groups.weights(shares),
            groups.weights(to_shares),
            groups.weights(to_scores),
            to_queries,
            to_keys,
            strict=True,
        ):
            torch.ops.aten._softmax_backward_data.out(to_share, share, -1, share.dtype, grad_input=to_score)
            torch.baddbmm(to_q, to_score, k, beta=0, alpha=ctx.scale, out=to_q)
            torch.baddbmm(to_k, to_score.transpose(1, 2), q, beta=0, alpha=ctx.scale, out=to_k)
        to_added = [
            groups.by_head(to_score).sum_to_size(shape) if shape is not None and needed else None
            for to_score, shape, needed in zip(
                groups.weights(to_scores), ctx.added, ctx.needs_input_grad[4:], strict=True
            )
        ]
        return onward, None, None, None, *to_added
