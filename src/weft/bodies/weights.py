"""Hugging Face's names and ours, as data that is read in both directions, and the checks on what is loaded."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor

from weft.bodies.archive import load_archive, require_held
from weft.bodies.bert import ACTIVATIONS, Body, BodyShape
from weft.foundation.content import read_json
from weft.foundation.errors import RunError, UserError
from weft.foundation.start import shapes_alone

# ours -> Hugging Face's. Several names on the right are stacked along the first axis, in that order.
ONCE: dict[str, tuple[str, ...]] = {
    "embeddings.tokens.weight": ("embeddings.word_embeddings.weight",),
    "embeddings.positions.weight": ("embeddings.position_embeddings.weight",),
    "embeddings.segments.weight": ("embeddings.token_type_embeddings.weight",),
    "embeddings.norm.weight": ("embeddings.LayerNorm.weight",),
    "embeddings.norm.bias": ("embeddings.LayerNorm.bias",),
    "pooler.weight": ("pooler.dense.weight",),
    "pooler.bias": ("pooler.dense.bias",),
}
PER_LAYER: dict[str, tuple[str, ...]] = {
    "qkv": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "attention_out": ("attention.output.dense",),
    "attention_norm": ("attention.output.LayerNorm",),
    "inner": ("intermediate.dense",),
    "outer": ("output.dense",),
    "outer_norm": ("output.LayerNorm",),
}

# config.json's keys <-> the fields of BodyShape
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

# No real body comes near these: a config that does is damaged, or means harm.
LARGEST = 10_000_000
MOST_LAYERS = 1000

# parts of pretraining or fine-tuning checkpoints that are not the body
NOT_BODY = ("cls.", "classifier.", "qa_outputs.", "embeddings.position_ids")


def names(layers: int) -> dict[str, tuple[str, ...]]:
    """The whole table for a body of so many layers."""
    table = dict(ONCE)
    for k in range(layers):
        for ours, theirs in PER_LAYER.items():
            for kind in ("weight", "bias"):
                table[f"layers.{k}.{ours}.{kind}"] = tuple(f"encoder.layer.{k}.{name}.{kind}" for name in theirs)
    return table


def to_hugging_face(state: Mapping[str, Tensor], layers: int) -> dict[str, Tensor]:
    """Our state -> Hugging Face's; stacked tensors are taken apart. A tensor without a place there is an error."""
    table = names(layers)
    homeless = sorted(state.keys() - table.keys())
    if homeless:
        raise RunError(
            f"the body's parameter {homeless[0]} has no name in a BERT checkpoint and would be lost, so nothing is "
            "saved; add it to the table of names in weft.bodies.weights"
        )
    theirs: dict[str, Tensor] = {}
    for ours, parts in table.items():
        for name, piece in zip(parts, state[ours].chunk(len(parts)), strict=True):
            theirs[name] = piece.contiguous()
    return theirs


def from_hugging_face(theirs: Mapping[str, Tensor], layers: int, where: str) -> dict[str, Tensor]:
    """Hugging Face's state -> ours. Only the pooler may be absent; a name that is not a BERT's is an error."""
    known = {_modern(name): tensor for name, tensor in theirs.items()}
    known = {name: tensor for name, tensor in known.items() if not name.startswith(NOT_BODY)}
    state: dict[str, Tensor] = {}
    for ours, parts in names(layers).items():
        absent = [name for name in parts if name not in known]
        if not absent:
            pieces = [known.pop(name) for name in parts]
            state[ours] = pieces[0] if len(pieces) == 1 else torch.cat(pieces)
        elif not ours.startswith("pooler."):
            raise UserError(f"{where}: tensor {absent[0]} is missing; expected a whole BERT checkpoint")
    left = sorted(name for name in known if not name.startswith("pooler."))
    if left:
        raise UserError(
            f"{where}: {len(left)} tensors do not belong to a {layers}-layer BERT, the first is {left[0]}; "
            "does config.json belong to these weights?"
        )
    return state


def _modern(name: str) -> str:
    """Old checkpoints prefix everything with `bert.` and say gamma and beta."""
    name = name.removeprefix("bert.")
    if name.endswith("LayerNorm.gamma"):
        return name.removesuffix("gamma") + "weight"
    if name.endswith("LayerNorm.beta"):
        return name.removesuffix("beta") + "bias"
    return name


def read_shape(folder: Path) -> BodyShape:
    """config.json of a BERT, or a refusal that names what was found."""
    path = folder / "config.json"
    if not path.is_file():
        raise UserError(
            f"{path}: there is no such file; a body is a folder with config.json, model.safetensors and tokenizer.json"
        )
    config = read_json(path)
    _require_bert(config, path)
    for key in ("is_decoder", "add_cross_attention"):
        if config.get(key):
            raise UserError(f"{path}: {key} is {config[key]}; weft trains encoders only")
    if config.get("position_embedding_type", "absolute") != "absolute":
        raise UserError(
            f"{path}: position_embedding_type is {config['position_embedding_type']!r}, expected 'absolute'"
        )
    values: dict[str, Any] = {}
    for field, key in SHAPE_KEYS.items():
        default = getattr(BodyShape, field)
        value = config.get(key, default)
        if isinstance(default, float) and type(value) is int:
            value = float(value)
        if type(value) is not type(default) or (not isinstance(value, str) and not 0 <= value <= LARGEST):
            raise UserError(f"{path}: {key} is {value!r}, expected a {type(default).__name__} from 0 to {LARGEST:,}")
        values[field] = value
    shape = BodyShape(**values)
    if not 1 <= shape.layers <= MOST_LAYERS:
        raise UserError(f"{path}: num_hidden_layers is {shape.layers}, expected 1 to {MOST_LAYERS}")
    if max(shape.dropout, shape.attention_dropout) >= 1:
        raise UserError(f"{path}: a dropout of {max(shape.dropout, shape.attention_dropout)} leaves nothing")
    if shape.activation not in ACTIVATIONS:
        raise UserError(f"{path}: hidden_act is {shape.activation!r}, expected one of {', '.join(ACTIVATIONS)}")
    if shape.heads < 1 or shape.width % shape.heads:
        raise UserError(f"{path}: hidden_size {shape.width} is not a multiple of {shape.heads} heads")
    return shape


def _require_bert(config: Mapping[str, Any], path: Path) -> None:
    found, classes = config.get("model_type"), config.get("architectures")
    if found == "bert":
        return
    if found == "weft":
        raise UserError(f"{path}: is a task exported by weft; name the run that it came from, or the body beside it")
    named = f" ({', '.join(map(str, classes))})" if isinstance(classes, list) and classes else ""
    raise UserError(
        f"{path}: model_type is {found!r}{named}, expected 'bert'; this architecture is not supported. Supported are "
        "BERT base and large, MiniLM, e5, bge and other bodies whose config.json has model_type 'bert'"
    )


def hugging_face_config(shape: BodyShape) -> dict[str, Any]:
    """What `transformers` must know of a body."""
    keys = {key: getattr(shape, field) for field, key in SHAPE_KEYS.items()}
    return {"architectures": ["BertModel"], "model_type": "bert", "pad_token_id": 0, **keys}


def saved_dtype(folder: Path) -> torch.dtype:
    """The precision that a saved model computes in: that of its weights, at least float32."""
    try:
        with safe_open(folder / "model.safetensors", framework="pt") as file:
            kinds = {file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118 -- not a dict
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"{folder / 'model.safetensors'}: is not a readable safetensors file ({error})") from None
    return torch.float64 if "F64" in kinds else torch.float32


def write_config(shape: BodyShape, folder: Path, **settings: Any) -> None:
    """config.json as `transformers` writes it for a BertModel; `settings` are added or replace its own."""
    config = hugging_face_config(shape) | settings
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def read_tensors(folder: Path) -> tuple[dict[str, Tensor], Path]:
    """All tensors of a checkpoint folder, on the CPU, and the file they came from."""
    modern, old = folder / "model.safetensors", folder / "pytorch_model.bin"
    if modern.exists():
        try:
            return load_file(modern), modern
        except (SafetensorError, OSError, ValueError) as error:
            raise UserError(f"{modern}: is not a readable safetensors file ({error})") from None
    if old.exists():
        return load_archive(old), old
    raise UserError(f"{folder}: has neither model.safetensors nor pytorch_model.bin")


def load_body(folder: Path, *, dropout: float | None = None, attention_dropout: float | None = None) -> Body:
    """A body with the weights of a Hugging Face folder, in fp32; a missing pooler keeps its random start."""
    shape = read_shape(folder)
    changed = {"dropout": dropout, "attention_dropout": attention_dropout}
    shape = BodyShape(**{**vars(shape), **{k: v for k, v in changed.items() if v is not None}})
    tensors, file = read_tensors(folder)
    require_held({name: t for name, t in tensors.items() if not _modern(name).startswith(NOT_BODY)}, file)
    state = from_hugging_face(tensors, shape.layers, str(file))
    with shapes_alone():  # shapes alone: a config that lies about its size must not fill the memory
        planned = {name: parameter.shape for name, parameter in Body(shape).named_parameters()}
    for name, tensor in state.items():
        if tensor.shape != planned[name]:
            raise UserError(
                f"{file}: {' + '.join(names(shape.layers)[name])} has shape {tuple(tensor.shape)}, "
                f"but config.json asks for {tuple(planned[name])}"
            )
        if not tensor.is_floating_point():
            raise UserError(f"{file}: {' + '.join(names(shape.layers)[name])} holds {tensor.dtype}, expected floats")
    body = Body(shape)
    for name, parameter in body.named_parameters():
        if name in state:
            with torch.no_grad():
                parameter.copy_(state[name])
    return body
