"""DistilBERT: fewer of BERT's layers, no token types and no pooler."""

from typing import ClassVar

from weft.bodies.family import UNTYPED_KEYS, Family, MaskedHead, Names
from weft.bodies.shape import BodyShape


class DistilBert(Family):
    """Sanh et al., "DistilBERT", 2019."""

    title = "DistilBERT"
    model_type = "distilbert"
    architecture = "DistilBertModel"
    default = BodyShape(model_type="distilbert", layers=6, segments=0)
    keys: ClassVar[dict[str, str]] = {field: key for field, key in UNTYPED_KEYS.items() if field != "norm_eps"} | {
        "width": "dim",
        "layers": "n_layers",
        "heads": "n_heads",
        "inner": "hidden_dim",
        "activation": "activation",
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
    }
    once: ClassVar[Names] = {
        "embeddings.tokens": ("embeddings.word_embeddings",),
        "embeddings.positions": ("embeddings.position_embeddings",),
        "embeddings.norm": ("embeddings.LayerNorm",),
    }
    per_layer: ClassVar[Names] = {
        "qkv": ("attention.q_lin", "attention.k_lin", "attention.v_lin"),
        "attention_out": ("attention.out_lin",),
        "attention_norm": ("sa_layer_norm",),
        "inner": ("ffn.lin1",),
        "outer": ("ffn.lin2",),
        "outer_norm": ("output_layer_norm",),
    }
    masked_head = MaskedHead(
        "DistilBertForMaskedLM", "distilbert.", "vocab_transform", "vocab_layer_norm", "vocab_projector.bias"
    )
    layer_prefix = "transformer.layer.{}."
    prefixes = ("distilbert.",)
    not_body = ("vocab_", "pre_classifier.", "classifier.", "qa_outputs.")
