"""Embeddings: the input of the first layer."""

import torch
from torch import Tensor, nn

from weft.bodies.dropout import Dropout
from weft.bodies.linear import PackedLinear
from weft.bodies.lookup import TokenTable
from weft.bodies.shape import BodyShape


class Embeddings(nn.Module):
    """Normalized sum of token, position and token type embeddings. Families can omit or add terms."""

    def __init__(self, shape: BodyShape, *, width: int | None = None, position_rows: int | None = None) -> None:
        """`width` and `position_rows` of the tables default to those of the shape; 0 rows means no position table."""
        super().__init__()
        width = shape.width if width is None else width
        rows = shape.positions if position_rows is None else position_rows
        self.tokens = TokenTable(shape.vocabulary, width)
        self.positions = nn.Embedding(rows, width) if rows else None
        self.segments = nn.Embedding(shape.segments, width) if shape.segments else None
        self.norm = nn.LayerNorm(width, eps=shape.norm_eps)
        self.dropout = Dropout(shape.dropout)
        self.use_segments = shape.segments > 1

    def forward(self, ids: Tensor, positions: Tensor, segments: Tensor) -> Tensor:
        embedded: Tensor = self.dropout(self.norm(self.total(ids, positions, segments)))
        return embedded

    def total(self, ids: Tensor, positions: Tensor, segments: Tensor) -> Tensor:
        """Return the sum of token, position and token type embeddings."""
        total: Tensor = self.tokens(ids)
        if self.positions is not None:
            total = total + self.positions(positions)
        if self.segments is not None:
            total = total + self.segments(segments if self.use_segments else torch.zeros_like(segments))
        return total


class ProjectedEmbeddings(Embeddings):
    """Embeddings narrower than the body, with a linear projection to the body's width."""

    def __init__(self, shape: BodyShape, width: int) -> None:
        super().__init__(shape, width=width)
        self.project = PackedLinear(width, shape.width)

    def forward(self, ids: Tensor, positions: Tensor, segments: Tensor) -> Tensor:
        projected: Tensor = self.project(super().forward(ids, positions, segments))
        return projected


class OffsetEmbeddings(Embeddings):
    """Embeddings whose positions start after the padding token's id, as in fairseq.

    Rows before the first position are not used, with one exception: a padding token that occurs in the text uses the
    row of its id, and later positions do not count it.
    """

    def __init__(self, shape: BodyShape) -> None:
        super().__init__(shape, position_rows=shape.positions + shape.pad + 1)
        self.pad = shape.pad

    def total(self, ids: Tensor, positions: Tensor, segments: Tensor) -> Tensor:
        padding = (ids == self.pad).long()
        before = padding.cumsum(-1) - padding
        first = torch.arange(ids.shape[-1], device=ids.device) - positions  # where each token's sequence begins
        places = positions + self.pad + 1 - (before - before.gather(-1, first))
        return super().total(ids, torch.where(padding.bool(), self.pad, places), segments)
