"""RoBERTa, XLM-RoBERTa and CamemBERT: BERT's layers, positions that start after the padding token's id."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from weft.bodies.bert import EMBEDDINGS, LAYER
from weft.bodies.embeddings import Embeddings, OffsetEmbeddings
from weft.bodies.family import Classifier, Family, MaskedHead, Names
from weft.bodies.shape import BodyShape
from weft.foundation.errors import UserError


class CountsFromPad(Family):
    """Family whose position table has `pad + 1` rows before the first position, so it has more rows than positions."""

    def read(self, config: Mapping[str, Any], path: Path) -> BodyShape:
        shape = super().read(config, path)
        pad = config.get("pad_token_id", self.default.pad)
        if type(pad) is not int or not 0 <= pad < shape.vocabulary:
            raise UserError(f"{path}: pad_token_id is {pad!r}, expected a token from 0 to {shape.vocabulary - 1}")
        if shape.positions <= pad + 1:
            found = f"{self.keys['positions']} is {shape.positions}"
            raise UserError(f"{path}: {found}, of which positions before {pad + 1} are never used; expected more")
        return replace(shape, pad=pad, positions=shape.positions - pad - 1)

    def config(self, shape: BodyShape) -> dict[str, Any]:
        return super().config(shape) | {self.keys["positions"]: shape.positions + shape.pad + 1}

    def embeddings(self, shape: BodyShape) -> Embeddings:
        return OffsetEmbeddings(shape)


class Roberta(CountsFromPad):
    """Liu et al., "RoBERTa", 2019."""

    title = "RoBERTa"
    model_type = "roberta"
    architecture = "RobertaModel"
    default = BodyShape(model_type="roberta", vocabulary=50265, pad=1)
    has_pooler = True
    classifier = Classifier(
        "RobertaForSequenceClassification", "roberta.", "classifier.dense", "classifier.out_proj", "classifier_dropout"
    )
    masked_head = MaskedHead(
        "RobertaForMaskedLM", "roberta.", "lm_head.dense", "lm_head.layer_norm", "lm_head.bias", "gelu"
    )
    once: ClassVar[Names] = EMBEDDINGS | {"pooler": ("pooler.dense",)}
    per_layer: ClassVar[Names] = LAYER
    prefixes = ("roberta.",)
    not_body = ("lm_head.", "classifier.", "qa_outputs.")


class XlmRoberta(Roberta):
    """Conneau et al., "Unsupervised Cross-lingual Representation Learning at Scale", 2020."""

    title = "XLM-RoBERTa"
    model_type = "xlm-roberta"
    architecture = "XLMRobertaModel"
    default = replace(Roberta.default, model_type="xlm-roberta", vocabulary=30522)
    classifier = replace(Roberta.classifier, architecture="XLMRobertaForSequenceClassification")
    masked_head = replace(Roberta.masked_head, architecture="XLMRobertaForMaskedLM")


class Camembert(Roberta):
    """Martin et al., "CamemBERT", 2020."""

    title = "CamemBERT"
    model_type = "camembert"
    architecture = "CamembertModel"
    default = replace(Roberta.default, model_type="camembert", vocabulary=30522)
    classifier = replace(Roberta.classifier, architecture="CamembertForSequenceClassification")
    masked_head = replace(Roberta.masked_head, architecture="CamembertForMaskedLM")
