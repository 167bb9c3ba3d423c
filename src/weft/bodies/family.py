"""Base class of body families: shape from config.json, tensor names in both directions, and modules."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from torch import nn

from weft.bodies.embeddings import Embeddings
from weft.bodies.post_norm import Layer
from weft.bodies.shape import ACTIVATIONS, BodyShape
from weft.foundation.errors import UserError

# Far above any real body: a config that exceeds these limits is damaged or malicious.
LARGEST = 10_000_000
MOST_LAYERS = 1000

Names = dict[str, tuple[str, ...]]
"""weft module -> Hugging Face modules; tensors of several modules are concatenated along the first axis, in order."""

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
"""Shape field -> key of config.json, as in most families."""
UNTYPED_KEYS = {field: key for field, key in SHAPE_KEYS.items() if field != "segments"}
"""The same for families without token types."""


@dataclass(frozen=True)
class Classifier:
    """Sequence classifier of `transformers`, for families where it consists of the pooler and one linear layer."""

    architecture: str
    prefix: str
    """Prefix of the body's tensor names."""
    pooler: str
    """Name of the pooler's linear layer."""
    output: str
    """Name of the output layer."""
    dropout_key: str | None
    """Key of config.json for the dropout before the output layer."""


@dataclass(frozen=True)
class MaskedHead:
    """Masked-language modelling in `transformers`: dense layer, activation, LayerNorm, tied token embeddings."""

    architecture: str
    prefix: str
    """Prefix of the body's tensor names."""
    dense: str
    norm: str
    bias: str
    """Name of the bias of the output, a tensor."""
    activation: str | None = None
    """Defaults to the activation of the layers."""


class Family:
    """Base class with the common defaults; each family overrides what differs."""

    title: ClassVar[str]
    model_type: ClassVar[str]
    """`model_type` of config.json."""
    architecture: ClassVar[str]
    """Class name in `transformers` of the body without a head."""
    default: ClassVar[BodyShape]
    """Defaults for keys that config.json omits. All shapes of the family are of this class."""
    keys: ClassVar[dict[str, str]] = SHAPE_KEYS
    has_pooler: ClassVar[bool] = False
    classifier: ClassVar[Classifier | None] = None
    has_plain_tagger: ClassVar[bool] = True
    """Whether the token classifier of `transformers` is one linear layer on the last states."""
    masked_head: ClassVar[MaskedHead | None] = None
    """Where checkpoints have the head of masked-language modelling. Without it, `weft pretrain` starts a new head."""

    once: ClassVar[Names]
    per_layer: ClassVar[Names]
    layer_prefix: ClassVar[str] = "encoder.layer.{}."
    """Prefix of a layer's tensor names."""
    prefixes: ClassVar[tuple[str, ...]]
    """Prefixes that some checkpoints add to all names of the body."""
    not_body: ClassVar[tuple[str, ...]]
    """Prefixes of tensor names that belong to pretraining or fine-tuning heads."""

    # -- config.json

    def read(self, config: Mapping[str, Any], path: Path) -> BodyShape:
        """Read the shape from a config.json. An invalid value raises a `UserError` that names the key."""
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
        """Reject invalid shapes. Families extend this with configurations that they do not support."""
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
        """Return the config.json entries that `transformers` needs."""
        keys = {key: getattr(shape, field) for field, key in self.keys.items()}
        known = {"architectures": [self.architecture], "model_type": self.model_type, "pad_token_id": shape.pad}
        return known | keys

    # -- modules

    def embeddings(self, shape: BodyShape) -> Embeddings:
        return Embeddings(shape)

    def layers(self, shape: BodyShape) -> list[nn.Module]:
        """Build the layers, one module per set of weights; a shared layer is listed once."""
        return [Layer(shape) for _ in range(shape.layers)]

    def relative(self, shape: BodyShape) -> nn.Module | None:  # noqa: ARG002 -- overridden by some families
        """Build the module whose `forward(layout)` returns `TokenLayout.shared`, the tensors shared by all layers."""
        return None

    def final(self, shape: BodyShape) -> nn.Module | None:  # noqa: ARG002 -- overridden by some families
        """Build the module applied to the output of the last layer, if any."""
        return None

    def can_cut(self, layers: int, shape: BodyShape) -> bool:  # noqa: ARG002 -- overridden by some families
        """Return whether the first `layers` alone form a body in `transformers` with the same last hidden state."""
        return True

    # -- names

    def names(self, shape: BodyShape) -> dict[str, tuple[str, ...]]:
        """Return the complete name table for a body of this shape."""
        table = dict(self.once)
        for k in range(shape.layers):
            prefix = self.layer_prefix.format(k)
            table |= {f"layers.{k}.{ours}": tuple(map(prefix.__add__, names)) for ours, names in self.per_layer.items()}
        return table
