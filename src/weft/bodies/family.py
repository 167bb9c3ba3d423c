"""What a family of bodies is: a shape read from config.json, names of tensors in both directions, and modules."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from torch import nn

from weft.bodies.embeddings import Embeddings
from weft.bodies.post_norm import Layer
from weft.bodies.shape import ACTIVATIONS, BodyShape
from weft.foundation.errors import UserError

# No real body comes near these: a config that does is damaged, or means harm.
LARGEST = 10_000_000
MOST_LAYERS = 1000

Names = dict[str, tuple[str, ...]]
"""our module -> theirs; the tensors of several modules on the right are stacked along the first axis, in that order"""

SHAPE_KEYS = {
    "vocabulary": "vocab_size",
    "width": "hidden_size",
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "inner": "intermediate_size",
    "positions": "max_position_embeddings",
    "segments": "type_vocab_size",
    "norm_eps": "layer_norm_eps",
    "activation": "hidden_act",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
}
"""fields of a shape -> the keys of config.json that most families use"""
UNTYPED_KEYS = {field: key for field, key in SHAPE_KEYS.items() if field != "segments"}
"""of a family without token types"""


@dataclass(frozen=True)
class Classifier:
    """`transformers`' own sequence classifier, where it is the body's pooler and one linear layer."""

    architecture: str
    prefix: str
    """before the names of the body's tensors"""
    pooler: str
    """where the pooler's layer is"""
    output: str
    """where the linear layer is"""
    dropout_key: str | None
    """config.json's key for the dropout before that layer"""


class Family:
    """The common case; a family's own file overrides what differs."""

    title: ClassVar[str]
    model_type: ClassVar[str]
    """as in config.json"""
    architecture: ClassVar[str]
    """`transformers`' class of the body alone"""
    default: ClassVar[BodyShape]
    """what config.json need not say; its class is that of every shape of the family"""
    keys: ClassVar[dict[str, str]] = SHAPE_KEYS
    has_pooler: ClassVar[bool] = False
    classifier: ClassVar[Classifier | None] = None

    once: ClassVar[Names]
    per_layer: ClassVar[Names]
    layer_prefix: ClassVar[str] = "encoder.layer.{}."
    """before the names of a layer's tensors"""
    prefixes: ClassVar[tuple[str, ...]]
    """that some checkpoints put before all names of the body"""
    not_body: ClassVar[tuple[str, ...]]
    """how names begin that belong to pretraining or fine-tuning"""

    # -- config.json

    def read(self, config: Mapping[str, Any], path: Path) -> BodyShape:
        """The shape that a config.json describes, or a `UserError` that names the key."""
        for key in ("is_decoder", "add_cross_attention"):
            if config.get(key):
                raise UserError(f"{path}: {key} is {config[key]}; weft trains encoders only")
        values: dict[str, Any] = {}
        for field, key in self.keys.items():
            default = getattr(self.default, field)
            value = config.get(key, default)
            if isinstance(default, float) and type(value) is int:
                value = float(value)
            if type(value) is not type(default) or (not isinstance(value, str) and not 0 <= value <= LARGEST):
                expected = f"a {type(default).__name__} from 0 to {LARGEST:,}"
                raise UserError(f"{path}: {key} is {value!r}, expected {expected}")
            values[field] = value
        shape = replace(self.default, **values)
        self.check(config, shape, path)
        return shape

    def check(self, config: Mapping[str, Any], shape: BodyShape, path: Path) -> None:
        """Reject what cannot be built; families add what they do not support."""
        if config.get("position_embedding_type", "absolute") != "absolute":
            raise UserError(
                f"{path}: position_embedding_type is {config['position_embedding_type']!r}, expected 'absolute'"
            )
        if not 1 <= shape.layers <= MOST_LAYERS:
            raise UserError(f"{path}: {self.keys['layers']} is {shape.layers}, expected 1 to {MOST_LAYERS}")
        if max(shape.dropout, shape.attention_dropout) >= 1:
            raise UserError(f"{path}: a dropout of {max(shape.dropout, shape.attention_dropout)} leaves nothing")
        if shape.activation not in ACTIVATIONS:
            key, known = self.keys["activation"], ", ".join(ACTIVATIONS)
            raise UserError(f"{path}: {key} is {shape.activation!r}, expected one of {known}")
        if shape.heads < 1 or shape.width % shape.heads:
            raise UserError(f"{path}: {self.keys['width']} {shape.width} is not a multiple of {shape.heads} heads")

    def config(self, shape: BodyShape) -> dict[str, Any]:
        """What `transformers` must know of a body."""
        keys = {key: getattr(shape, field) for field, key in self.keys.items()}
        known = {"architectures": [self.architecture], "model_type": self.model_type, "pad_token_id": shape.pad}
        return known | keys

    # -- modules

    def embeddings(self, shape: BodyShape) -> Embeddings:
        return Embeddings(shape)

    def layers(self, shape: BodyShape) -> list[nn.Module]:
        """Modules with weights of their own; a family that uses one several times names it once."""
        return [Layer(shape) for _ in range(shape.layers)]

    def relative(self, shape: BodyShape) -> nn.Module | None:  # noqa: ARG002 -- what most families have not
        """`forward(layout)` gives what all layers of a pass share (`TokenLayout.shared`)."""
        return None

    def final(self, shape: BodyShape) -> nn.Module | None:  # noqa: ARG002 -- what most families have not
        """What the last layer's states go through."""
        return None

    def can_cut(self, layers: int, shape: BodyShape) -> bool:  # noqa: ARG002 -- what most families need not know
        """Whether the first `layers` alone are a body in `transformers` whose last state is the same."""
        return True

    # -- names

    def names(self, shape: BodyShape) -> dict[str, tuple[str, ...]]:
        """The whole table for a body of this shape."""
        table = dict(self.once)
        for k in range(shape.layers):
            prefix = self.layer_prefix.format(k)
            table |= {f"layers.{k}.{ours}": tuple(map(prefix.__add__, names)) for ours, names in self.per_layer.items()}
        return table
