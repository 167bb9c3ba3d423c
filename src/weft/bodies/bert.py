"""BERT, and models with the same layers: MiniLM, e5, bge and others."""

from typing import ClassVar

from weft.bodies.family import Classifier, Family, MaskedHead, Names
from weft.bodies.shape import BodyShape

EMBEDDINGS: Names = {
    "embeddings.tokens": ("embeddings.word_embeddings",),
    "embeddings.positions": ("embeddings.position_embeddings",),
    "embeddings.segments": ("embeddings.token_type_embeddings",),
    "embeddings.norm": ("embeddings.LayerNorm",),
}
LAYER: Names = {
    "qkv": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "attention_out": ("attention.output.dense",),
    "attention_norm": ("attention.output.LayerNorm",),
    "inner": ("intermediate.dense",),
    "outer": ("output.dense",),
    "outer_norm": ("output.LayerNorm",),
}


class Bert(Family):
    """Devlin et al., "BERT", 2019."""

    title = "BERT"
    model_type = "bert"
    architecture = "BertModel"
    default = BodyShape()
    has_pooler = True
    classifier = Classifier(
        "BertForSequenceClassification", "bert.", "bert.pooler.dense", "classifier", "classifier_dropout"
    )
    masked_head = MaskedHead(
        "BertForMaskedLM",
        "bert.",
        "cls.predictions.transform.dense",
        "cls.predictions.transform.LayerNorm",
        "cls.predictions.bias",
    )
    once: ClassVar[Names] = EMBEDDINGS | {"pooler": ("pooler.dense",)}
    per_layer: ClassVar[Names] = LAYER
    prefixes = ("bert.",)
    not_body = ("cls.", "classifier.", "qa_outputs.")
