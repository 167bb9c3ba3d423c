"""ALBERT: all layers share one set of weights, and the embeddings have a different width."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from torch import nn

from weft.bodies.bert import EMBEDDINGS
from weft.bodies.embeddings import Embeddings, ProjectedEmbeddings
from weft.bodies.family import SHAPE_KEYS, Classifier, Family, MaskedHead, Names
from weft.bodies.post_norm import Layer
from weft.bodies.shape import BodyShape, FactorizedShape
from weft.foundation.errors import UserError


class Albert(Family):
    """Lan et al., "ALBERT", 2020. Dropout also follows the feed-forward block, as in the authors' code."""

    title = "ALBERT"
    model_type = "albert"
    architecture = "AlbertModel"
    default = FactorizedShape(
        model_type="albert",
        vocabulary=30000,
        width=4096,
        heads=64,
        inner=16384,
        activation="gelu_new",
        dropout=0.0,
        attention_dropout=0.0,
    )
    keys = SHAPE_KEYS | {"embedding_width": "embedding_size"}
    has_pooler = True
    classifier = Classifier(
        "AlbertForSequenceClassification", "albert.", "albert.pooler", "classifier", "classifier_dropout_prob"
    )
    masked_head = MaskedHead(
        "AlbertForMaskedLM", "albert.", "predictions.dense", "predictions.LayerNorm", "predictions.bias"
    )
    once: ClassVar[Names] = EMBEDDINGS | {
        "embeddings.project": ("encoder.embedding_hidden_mapping_in",),
        "pooler": ("pooler",),
    }
    per_layer: ClassVar[Names] = {
        "qkv": ("attention.query", "attention.key", "attention.value"),
        "attention_out": ("attention.dense",),
        "attention_norm": ("attention.LayerNorm",),
        "inner": ("ffn",),
        "outer": ("ffn_output",),
        "outer_norm": ("full_layer_layer_norm",),
    }
    layer_prefix = "encoder.albert_layer_groups.{}.albert_layers.0."
    prefixes = ("albert.",)
    not_body = ("predictions.", "sop_classifier.", "classifier.", "qa_outputs.")

    def check(self, config: Mapping[str, Any], shape: BodyShape, path: Path) -> None:
        super().check(config, shape, path)
        for key in ("num_hidden_groups", "inner_group_num"):
            if config.get(key, 1) != 1:
                raise UserError(f"{path}: {key} is {config[key]!r}, expected 1: all layers share one set of weights")

    def embeddings(self, shape: BodyShape) -> Embeddings:
        assert isinstance(shape, FactorizedShape)
        return ProjectedEmbeddings(shape, shape.embedding_width)

    def layers(self, shape: BodyShape) -> list[nn.Module]:
        return [Layer(shape)]

    def names(self, shape: BodyShape) -> dict[str, tuple[str, ...]]:
        return super().names(replace(shape, layers=1))
