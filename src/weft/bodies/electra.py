"""ELECTRA: BERT's layers, embeddings of a different width, no pooler."""

from typing import ClassVar

from weft.bodies.bert import EMBEDDINGS, LAYER
from weft.bodies.embeddings import Embeddings, ProjectedEmbeddings
from weft.bodies.family import SHAPE_KEYS, Family, Names
from weft.bodies.shape import BodyShape, FactorizedShape


class Electra(Family):
    """Clark et al., "ELECTRA", 2020: the discriminator, or the generator without its head."""

    title = "ELECTRA"
    model_type = "electra"
    architecture = "ElectraModel"
    default = FactorizedShape(model_type="electra", width=256, heads=4, inner=1024)
    keys = SHAPE_KEYS | {"embedding_width": "embedding_size"}
    once: ClassVar[Names] = EMBEDDINGS | {"embeddings.project": ("embeddings_project",)}
    per_layer: ClassVar[Names] = LAYER
    prefixes = ("electra.",)
    not_body = ("generator_", "discriminator_predictions.", "classifier.", "qa_outputs.")

    def embeddings(self, shape: BodyShape) -> Embeddings:
        assert isinstance(shape, FactorizedShape)
        if shape.embedding_width == shape.width:
            return Embeddings(shape)
        return ProjectedEmbeddings(shape, shape.embedding_width)
