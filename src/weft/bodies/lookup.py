"""The table of token vectors, whose gradient is almost all zeros.

A batch uses some hundred of the thirty thousand rows. torch makes a new gradient of the whole table for each pass and
fills it with zeros. Here, on a CPU, one gradient is kept from step to step, only the rows that the last step used are
set back to zero, and further passes of a step add their rows to it. What the optimizer sees is the same.
"""

from typing import Any

import torch
from torch import Tensor, nn

UsedRows = tuple[Tensor, Tensor]
"""different ids [u], and the gradient [u, w] of their rows; that of all other rows is zero"""


class TokenTable(nn.Embedding):
    """`ids [t] -> vectors [t, w]`"""

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__(vocabulary, width)
        self.keeps_gradient = False
        """asked for on a CPU, by whoever sees to it that nothing but lookups (no penalty, say) adds to the gradient"""
        self._kept: Tensor | None = None
        self._used: list[Tensor] = []
        """ids whose rows of the kept gradient are not zero"""

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
        """The gradient of the rows that have one; afterwards the table has none."""
        if self.weight.grad is None:
            return torch.zeros(0, dtype=torch.int64), self.weight.new_zeros(0, self.embedding_dim)
        ids = torch.cat(self._used).unique()
        rows = self.weight.grad.index_select(0, ids)
        self.weight.grad = None
        return ids, rows

    def _clean(self) -> Tensor:
        """A gradient of zeros."""
        if self._kept is None or self._kept.dtype != self.weight.dtype:
            self._kept = torch.zeros_like(self.weight)
        for ids in self._used:
            self._kept.index_fill_(0, ids, 0)
        self._used.clear()
        return self._kept


class _Lookup(torch.autograd.Function):
    """Hands the gradient to the table, and none to autograd, which would copy it."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, table: TokenTable, ids: Tensor) -> Tensor:
        ctx.table, ctx.ids = table, ids
        return weight.index_select(0, ids)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, None]:
        ctx.table.add_gradient(ctx.ids, gradient)
        return None, None, None
