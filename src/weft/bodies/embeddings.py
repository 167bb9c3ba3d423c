"""What enters the first layer."""

import torch
from torch import Tensor, nn

from weft.bodies.dropout import Dropout
from weft.bodies.lookup import TokenTable
from weft.bodies.shape import BodyShape


class Embeddings(nn.Module):
    """token + position + segment, normalized; a family leaves some of these out, or has more of them"""

    def __init__(self, shape: BodyShape, *, width: int | None = None, position_rows: int | None = None) -> None:
        """`width` of the tables and `position_rows` in theirs, if they are not those of the shape; 0 is no table."""
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
        """The sum of what a token, its place and its text mean."""
        total: Tensor = self.tokens(ids)
        if self.positions is not None:
            total = total + self.positions(positions)
        if self.segments is not None:
            total = total + self.segments(segments if self.use_segments else torch.zeros_like(segments))
        return total


class ProjectedEmbeddings(Embeddings):
    """Tables narrower than the body, and a linear layer from one width to the other."""

    def __init__(self, shape: BodyShape, width: int) -> None:
        super().__init__(shape, width=width)
        self.project = nn.Linear(width, shape.width)

    def forward(self, ids: Tensor, positions: Tensor, segments: Tensor) -> Tensor:
        projected: Tensor = self.project(super().forward(ids, positions, segments))
        return projected


class OffsetEmbeddings(Embeddings):
    """Positions that are counted from the padding token's number on, as fairseq does.

    The rows before the first place are never read, but for a text that spells the padding token out: it has the row of
    that number, and places after it are counted without it.
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
