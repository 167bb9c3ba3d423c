"""DeBERTa-v2 and v3: disentangled attention to content and to relative positions.

The score of query i and key j is `(q_i·k_j + q_i·K[i - j] + k_j·Q[i - j]) / sqrt(3 d)`: content to content, content to
position (c2p) and position to content (p2c). K and Q are projections of one table of relative positions that all layers
share. Distances beyond half of the buckets are bucketed on a log scale.

Shapes: n sequences, h heads, l positions, d dimensions per head, r relative positions that can occur in a pass.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.bodies.adapted import AdaptedLayer
from weft.bodies.bert import EMBEDDINGS, LAYER
from weft.bodies.embeddings import Embeddings
from weft.bodies.family import SHAPE_KEYS, Family, Names
from weft.bodies.layout import TokenLayout
from weft.bodies.linear import PackedLinear
from weft.bodies.post_norm import Layer
from weft.bodies.shape import BodyShape
from weft.foundation.errors import UserError

Projected = tuple[Tensor | None, Tensor | None]
"""Queries and keys of the relative positions; None for those that are not used."""


@dataclass(frozen=True)
class DebertaShape(BodyShape):
    embedding_width: int = 768
    absolute: bool = False
    """Whether absolute position embeddings are also added."""
    farthest: int = 512
    """Distances from this value on share one bucket."""
    buckets: int = 256
    """Number of buckets per direction; 0 for one bucket per distance."""
    c2p: bool = True
    p2c: bool = True
    shares_projections: bool = True
    """Whether relative positions use the query and key projections of the layers."""
    norms_relative: bool = True

    @property
    def span(self) -> int:
        """Number of table rows per direction."""
        return self.buckets or self.farthest


class RelativePositions(nn.Module):
    """Relative position tensors shared by all layers of a pass.

    These are the table rows `[r, w]` for the distances that occur, and for each group the row index `[l, l]` of every
    query-key distance.
    """

    def __init__(self, shape: DebertaShape) -> None:
        super().__init__()
        self.table = nn.Embedding(2 * shape.span, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=shape.norm_eps) if shape.norms_relative else None
        self.shape = shape

    def forward(self, layout: TokenLayout) -> list[Tensor]:
        rows: Tensor = self.table.weight
        first, last = 0, len(rows) - 1
        if layout.longest is not None:  # short texts use only a small part of the table
            ends = torch.tensor([1 - layout.longest, layout.longest - 1], device=rows.device)
            first, last = self._rows(ends).tolist()
        near = rows[first : last + 1]
        places = [torch.arange(length, device=rows.device) for length in layout.lengths]
        return [
            near if self.norm is None else self.norm(near),
            *(self._rows(own[:, None] - own) - first for own in places),
        ]

    def _rows(self, distance: Tensor) -> Tensor:
        """Return the table row of each distance i - j."""
        span = self.shape.span
        if self.shape.buckets:
            distance = log_buckets(distance, self.shape.buckets, self.shape.farthest)
        return (distance + span).clamp(0, 2 * span - 1)


def log_buckets(distance: Tensor, count: int, farthest: int) -> Tensor:
    """Return the bucket of each distance: exact up to half of `count`, on a log scale beyond."""
    half = count // 2
    steps = distance.abs().clamp(min=half - 1)
    # in fp32, as in pretraining: bucket boundaries must not move
    share = torch.log(steps / half) / torch.log(torch.tensor((farthest - 1) / half, device=distance.device))
    far = (torch.ceil(share * (half - 1)) + half).long() * distance.sign()
    return torch.where(distance.abs() <= half, distance, far)


class DisentangledLayer(Layer):
    """BERT's layer with relative position scores."""

    def __init__(self, shape: DebertaShape) -> None:
        super().__init__(shape)
        self.heads = shape.heads
        own = not shape.shares_projections
        self.position_keys = PackedLinear(shape.width, shape.width) if own and shape.c2p else None
        self.position_queries = PackedLinear(shape.width, shape.width) if own and shape.p2c else None
        self.shares_projections = shape.shares_projections
        self.uses = (shape.c2p, shape.p2c)
        self.scale = (shape.width // shape.heads * (1 + sum(self.uses))) ** -0.5

    def context(self, hidden: Tensor, layout: TokenLayout, dropout: float, adapted: AdaptedLayer) -> Tensor:
        table, *rows = layout.shared
        table = self.dropout(table)
        plain = self._projected(table)
        # an adapter of the query and key projections also changes what they make of relative positions
        shared = self.shares_projections and "qkv" in adapted.sites
        all_ways = [self._updated(table, plain, one) for one in adapted.alone()] if shared else [plain]
        ways = [(self._by_head(queries), self._by_head(keys)) for queries, keys in all_ways]
        bias = partial(self._bias, rows=rows, ways=ways, sequences=partial(layout.sequences, adapted.sizes))
        return layout.attend(adapted.linear("qkv", self.qkv, hidden), dropout, bias, self.scale)

    def _projected(self, table: Tensor) -> Projected:
        """Return queries and keys `[r, w]` of the relative positions."""
        width = table.shape[1]
        keys: Tensor | None = None
        queries: Tensor | None = None
        c2p, p2c = self.uses
        if c2p:
            if self.position_keys is None:
                keys = F.linear(table, self.qkv.weight[width : 2 * width], self.qkv.bias[width : 2 * width])
            else:
                keys = self.position_keys(table)
        if p2c:
            if self.position_queries is None:
                queries = F.linear(table, self.qkv.weight[:width], self.qkv.bias[:width])
            else:
                queries = self.position_queries(table)
        return queries, keys

    def _updated(self, table: Tensor, plain: Projected, adapted: AdaptedLayer) -> Projected:
        """Return the projections of the relative positions as one adapter changes them."""
        zeros = torch.zeros_like(table)
        stacked = torch.cat([*(zeros if one is None else one for one in plain), zeros], dim=1)
        queries, keys, _ = adapted.update("qkv", table, stacked).chunk(3, dim=1)
        return None if plain[0] is None else queries, None if plain[1] is None else keys

    def _by_head(self, rows: Tensor | None) -> Tensor | None:
        return None if rows is None else rows.unflatten(1, (self.heads, -1)).permute(1, 2, 0)

    def _bias(
        self,
        number: int,
        q: Tensor,
        k: Tensor,
        *,
        rows: list[Tensor],
        ways: list[Projected],
        sequences: Callable[[int], list[int]],
    ) -> Tensor:
        """Return the relative position scores of a group, [n, h, l, l]; `ways` are the projections of each adapter."""
        if len(ways) == 1:
            return self._scores(rows[number], q, k, ways[0])
        counts = sequences(number)
        pieces = zip(q.split(counts), k.split(counts), ways, strict=True)
        return torch.cat([self._scores(rows[number], *piece) for piece in pieces])

    def _scores(self, rows: Tensor, q: Tensor, k: Tensor, projected: Projected) -> Tensor:
        queries, keys = projected
        wanted = rows.expand(*q.shape[:2], -1, -1)
        score: Tensor | None = None
        if keys is not None:
            score = torch.matmul(q, keys).gather(-1, wanted)
        if queries is not None:
            back = torch.matmul(k, queries).gather(-1, wanted.transpose(-1, -2)).transpose(-1, -2)
            score = back if score is None else score + back
        assert score is not None, "a config without either is rejected"
        scaled: Tensor = score * self.scale
        return scaled


class DebertaEmbeddings(Embeddings):
    """Embeddings with a projection before the norm if the widths differ, and with optional absolute positions."""

    def __init__(self, shape: DebertaShape) -> None:
        narrow = shape.embedding_width != shape.width
        super().__init__(shape, width=shape.embedding_width, position_rows=None if shape.absolute else 0)
        self.project = PackedLinear(shape.embedding_width, shape.width, bias=False) if narrow else None
        if narrow:
            self.norm = nn.LayerNorm(shape.width, eps=shape.norm_eps)

    def total(self, ids: Tensor, positions: Tensor, segments: Tensor) -> Tensor:
        total = super().total(ids, positions, segments)
        if self.project is not None:
            total = self.project(total)
        return total


class Deberta(Family):
    """He et al., "DeBERTa", 2021, and "DeBERTaV3", 2023. The convolution of some v2 bodies is not supported."""

    title = "DeBERTa-v2/v3"
    model_type = "deberta-v2"
    architecture = "DebertaV2Model"
    default = DebertaShape(
        model_type="deberta-v2",
        vocabulary=128100,
        width=1536,
        layers=24,
        heads=24,
        inner=6144,
        segments=0,
        norm_eps=1e-7,
    )
    keys = SHAPE_KEYS
    once: ClassVar[Names] = EMBEDDINGS | {
        "embeddings.project": ("embeddings.embed_proj",),
        "relative.table": ("encoder.rel_embeddings",),
        "relative.norm": ("encoder.LayerNorm",),
    }
    per_layer: ClassVar[Names] = LAYER | {
        "qkv": ("attention.self.query_proj", "attention.self.key_proj", "attention.self.value_proj"),
        "position_keys": ("attention.self.pos_key_proj",),
        "position_queries": ("attention.self.pos_query_proj",),
    }
    prefixes = ("deberta.",)
    not_body = ("lm_predictions.", "mask_predictions.", "cls.", "lm_head.", "pooler.", "classifier.", "qa_outputs.")

    def read(self, config: Mapping[str, Any], path: Path) -> BodyShape:
        shape = super().read(config, path)
        assert isinstance(shape, DebertaShape)
        kinds = config.get("pos_att_type") or []
        kinds = kinds.lower().split("|") if isinstance(kinds, str) else kinds
        kinds = {str(kind).strip() for kind in kinds}
        if not kinds or not kinds <= {"c2p", "p2c"}:
            raise UserError(f"{path}: pos_att_type is {config.get('pos_att_type')!r}, expected c2p, p2c or both")
        farthest = _whole(config, "max_relative_positions", -1, path)
        return replace(
            shape,
            embedding_width=_whole(config, "embedding_size", shape.width, path),
            absolute=bool(config.get("position_biased_input", True)),
            farthest=farthest if farthest > 0 else shape.positions,
            buckets=max(_whole(config, "position_buckets", -1, path), 0),
            c2p="c2p" in kinds,
            p2c="p2c" in kinds,
            shares_projections=bool(config.get("share_att_key", False)),
            norms_relative="layer_norm" in str(config.get("norm_rel_ebd", "none")).lower(),
        )

    def check(self, config: Mapping[str, Any], shape: BodyShape, path: Path) -> None:
        super().check(config, shape, path)
        if config.get("relative_attention") is not True:
            found = config.get("relative_attention")
            raise UserError(f"{path}: relative_attention is {found!r}, expected true as in all published bodies")
        if config.get("conv_kernel_size", 0):
            raise UserError(
                f"{path}: conv_kernel_size is {config['conv_kernel_size']!r}; the convolution of DeBERTa-v2 xlarge is "
                "not supported. Use a body without it, such as any DeBERTa-v3"
            )
        if config.get("attention_head_size", shape.width // shape.heads) != shape.width // shape.heads:
            raise UserError(f"{path}: attention_head_size is not hidden_size / num_attention_heads")

    def config(self, shape: BodyShape) -> dict[str, Any]:
        assert isinstance(shape, DebertaShape)
        return super().config(shape) | {
            "embedding_size": shape.embedding_width,
            "position_biased_input": shape.absolute,
            "relative_attention": True,
            "max_relative_positions": shape.farthest,
            "position_buckets": shape.buckets or -1,
            "pos_att_type": [kind for kind, used in (("p2c", shape.p2c), ("c2p", shape.c2p)) if used],
            "share_att_key": shape.shares_projections,
            "norm_rel_ebd": "layer_norm" if shape.norms_relative else "none",
        }

    def embeddings(self, shape: BodyShape) -> Embeddings:
        assert isinstance(shape, DebertaShape)
        return DebertaEmbeddings(shape)

    def layers(self, shape: BodyShape) -> list[nn.Module]:
        assert isinstance(shape, DebertaShape)
        return [DisentangledLayer(shape) for _ in range(shape.layers)]

    def can_cut(self, layers: int, shape: BodyShape) -> bool:  # noqa: ARG002
        """Require at least one layer: the class in `transformers` fails without layers."""
        return layers > 0

    def relative(self, shape: BodyShape) -> nn.Module:
        assert isinstance(shape, DebertaShape)
        return RelativePositions(shape)


def _whole(config: Mapping[str, Any], key: str, default: int, path: Path) -> int:
    value = config.get(key, default)
    if type(value) is not int or not -1 <= value <= 1_000_000:
        raise UserError(f"{path}: {key} is {value!r}, expected a whole number")
    return value
