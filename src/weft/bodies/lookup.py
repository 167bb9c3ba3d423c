"""Token embedding table with a reusable gradient buffer.

A batch uses a few hundred of the thirty thousand rows, so the gradient is almost all zeros. torch allocates and zeroes
a gradient of the whole table in each pass. Here, on a CPU, one gradient buffer is reused between steps: only the rows
used in the last step are reset to zero, and further passes of a step add their rows. The optimizer sees no difference.
"""

from typing import Any

import torch
from torch import Tensor, nn

UsedRows = tuple[Tensor, Tensor]
"""Unique ids [u] and the gradient [u, w] of their rows. The gradient of all other rows is zero."""


class TokenTable(nn.Embedding):
    """Embedding that maps `ids [t]` to `vectors [t, w]`."""

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__(vocabulary, width)
        self.keeps_gradient = False
        """Whether to reuse the gradient buffer.

        Set it on a CPU only, and only if nothing but lookups (no penalty, for example) adds to the gradient.
        """
        self._kept: Tensor | None = None
        self._used: list[Tensor] = []
        """Ids whose rows in the reused gradient are nonzero."""

    def forward(self, ids: Tensor) -> Tensor:
        trains = self.weight.requires_grad and torch.is_grad_enabled()
        if not (self.keeps_gradient and trains):
            return super().forward(ids)
        vectors: Tensor = _Lookup.apply(self.weight, self, ids)  # type: ignore[no-untyped-call]
        return vectors

    def add_gradient(self, ids: Tensor, gradient: Tensor) -> None:
        weight = self.weight
        if weight.grad is None:
            weight.grad = self._clean()
        weight.grad.index_add_(0, ids, gradient)
        if weight.grad is self._kept:
            self._used.append(ids)

    def take_gradient(self) -> UsedRows:
        """Return the gradient of the used rows and set the table's gradient to None."""
        if self.weight.grad is None:
            return torch.zeros(0, dtype=torch.int64), self.weight.new_zeros(0, self.embedding_dim)
        ids = torch.cat(self._used).unique()
        rows = self.weight.grad.index_select(0, ids)
        self.weight.grad = None
        return ids, rows

    def _clean(self) -> Tensor:
        """Return the gradient buffer, reset to zero."""
        if self._kept is None or self._kept.dtype != self.weight.dtype:
            self._kept = torch.zeros_like(self.weight)
        for ids in self._used:
            self._kept.index_fill_(0, ids, 0)
        self._used.clear()
        return self._kept


class _Lookup(torch.autograd.Function):
    """Lookup that adds the gradient to the table directly; autograd would copy it."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, table: TokenTable, ids: Tensor) -> Tensor:
        ctx.table, ctx.ids = table, ids
        return weight.index_select(0, ids)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, None]:
        ctx.table.add_gradient(ctx.ids, gradient)
        return None, None, None
