"""MPNet: BERT's layers with a relative position bias shared by all layers."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from weft.bodies.adapted import AdaptedLayer
from weft.bodies.family import UNTYPED_KEYS, Classifier, MaskedHead, Names
from weft.bodies.layout import TokenLayout
from weft.bodies.post_norm import Layer
from weft.bodies.roberta import CountsFromPad
from weft.bodies.shape import BodyShape
from weft.foundation.errors import UserError

BUCKETS = 32
FARTHEST = 128
"""Distances from this value on share a bucket."""


class RelativeBias(nn.Module):
    """Attention bias per head and distance bucket, for all groups of a pass."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.table = nn.Embedding(BUCKETS, heads)

    def forward(self, layout: TokenLayout) -> list[Tensor]:
        places = [torch.arange(length, device=layout.positions.device) for length in layout.lengths]
        return [self.table(buckets(own[None] - own[:, None])).permute(2, 0, 1) for own in places]


def buckets(distance: Tensor) -> Tensor:
    """Return the bucket of each distance: half per direction, exact for small distances, log scale for larger ones."""
    half = BUCKETS // 2
    exact = half // 2
    steps = distance.abs()
    spread = torch.log(steps.float() / exact) / math.log(FARTHEST / exact) * (half - exact)
    shared = (exact + spread.long()).clamp(max=half - 1)
    return (distance > 0) * half + torch.where(steps < exact, steps, shared)


class BiasedLayer(Layer):
    def context(self, hidden: Tensor, layout: TokenLayout, dropout: float, adapted: AdaptedLayer) -> Tensor:
        qkv = adapted.linear("qkv", self.qkv, hidden)
        return layout.attend(qkv, dropout, lambda number, _queries, _keys: layout.shared[number])


class Mpnet(CountsFromPad):
    """Song et al., "MPNet", 2020."""

    title = "MPNet"
    model_type = "mpnet"
    architecture = "MPNetModel"
    default = BodyShape(model_type="mpnet", vocabulary=30527, segments=0, pad=1)
    keys = UNTYPED_KEYS
    has_pooler = True
    classifier = Classifier("MPNetForSequenceClassification", "mpnet.", "classifier.dense", "classifier.out_proj", None)
    once: ClassVar[Names] = {
        "embeddings.tokens": ("embeddings.word_embeddings",),
        "embeddings.positions": ("embeddings.position_embeddings",),
        "embeddings.norm": ("embeddings.LayerNorm",),
        "relative.table": ("encoder.relative_attention_bias",),
        "pooler": ("pooler.dense",),
    }
    per_layer: ClassVar[Names] = {
        "qkv": ("attention.attn.q", "attention.attn.k", "attention.attn.v"),
        "attention_out": ("attention.attn.o",),
        "attention_norm": ("attention.LayerNorm",),
        "inner": ("intermediate.dense",),
        "outer": ("output.dense",),
        "outer_norm": ("output.LayerNorm",),
    }
    masked_head = MaskedHead(
        "MPNetForMaskedLM", "mpnet.", "lm_head.dense", "lm_head.layer_norm", "lm_head.bias", "gelu"
    )
    prefixes = ("mpnet.",)
    not_body = ("lm_head.", "classifier.", "qa_outputs.")

    def check(self, config: Mapping[str, Any], shape: BodyShape, path: Path) -> None:
        super().check(config, shape, path)
        for key, only in (("relative_attention_num_buckets", BUCKETS), ("pad_token_id", 1)):
            if config.get(key, only) != only:  # hard-coded in transformers
                raise UserError(f"{path}: {key} is {config[key]!r}, expected {only}")

    def layers(self, shape: BodyShape) -> list[nn.Module]:
        return [BiasedLayer(shape) for _ in range(shape.layers)]

    def relative(self, shape: BodyShape) -> RelativeBias:
        return RelativeBias(shape.heads)
