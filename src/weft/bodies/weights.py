"""Conversion between Hugging Face's tensor names and weft's, and loading of checkpoints with validation."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor

from weft.bodies.archive import load_archive, require_held
from weft.bodies.body import Body
from weft.bodies.family import Family
from weft.bodies.registry import FAMILIES
from weft.bodies.shape import BodyShape
from weft.foundation.content import read_json
from weft.foundation.errors import RunError, UserError
from weft.foundation.start import shapes_alone

NOT_BODY = ("embeddings.position_ids",)
"""Old checkpoints of several families store the position ids 0, 1, 2, ... as a tensor."""


@cache
def names(shape: BodyShape) -> Mapping[str, tuple[str, ...]]:
    """Return the table of weft's tensor names -> Hugging Face's, for a body of this shape."""
    with shapes_alone():
        return _names(Body(shape).state_dict(), shape)


def _names(tensors: Iterable[str], shape: BodyShape) -> dict[str, tuple[str, ...]]:
    """Return the entry of each tensor. A tensor whose module is not in the family's table raises an error."""
    family = FAMILIES[shape.model_type]
    modules, table = family.names(shape), {}
    for ours in tensors:
        module, _, kind = ours.rpartition(".")
        if module not in modules:
            raise RunError(
                f"the body's parameter {ours} has no name in a {family.title} checkpoint and would be lost, so nothing "
                f"is saved; add it to the table of names in {type(family).__module__}"
            )
        table[ours] = tuple(f"{theirs}.{kind}" for theirs in modules[module])
    return table


def to_hugging_face(state: Mapping[str, Tensor], shape: BodyShape) -> dict[str, Tensor]:
    """Convert weft's state to Hugging Face's and split stacked tensors. A tensor without a name raises an error."""
    theirs: dict[str, Tensor] = {}
    for ours, parts in _names(state, shape).items():
        for name, piece in zip(parts, state[ours].chunk(len(parts)), strict=True):
            theirs[name] = piece.contiguous()
    return theirs


def from_hugging_face(theirs: Mapping[str, Tensor], shape: BodyShape, where: str) -> dict[str, Tensor]:
    """Convert Hugging Face's state to weft's. Only the pooler may be missing; an unknown name raises an error."""
    family = FAMILIES[shape.model_type]
    known = body_only(theirs, family)
    state: dict[str, Tensor] = {}
    for ours, parts in names(shape).items():
        absent = [name for name in parts if name not in known]
        if not absent:
            pieces = [known.pop(name) for name in parts]
            state[ours] = pieces[0] if len(pieces) == 1 else torch.cat(pieces)
        elif not ours.startswith("pooler."):
            raise UserError(f"{where}: tensor {absent[0]} is missing; expected a whole {family.title} checkpoint")
    left = sorted(name for name in known if not name.startswith("pooler."))
    if left:
        raise UserError(
            f"{where}: {len(left)} tensors do not belong to a {shape.layers}-layer {family.title}, the first is "
            f"{left[0]}; does config.json belong to these weights?"
        )
    return state


def body_only(theirs: Mapping[str, Tensor], family: Family) -> dict[str, Tensor]:
    """Return the body's tensors under the names of the family's class in `transformers`."""
    modern = {modern_name(name, family): tensor for name, tensor in theirs.items()}
    return {name: tensor for name, tensor in modern.items() if not name.startswith((*family.not_body, *NOT_BODY))}


def modern_name(name: str, family: Family) -> str:
    """Remove the family's prefix, which some checkpoints add, and rename gamma and beta of old checkpoints."""
    for prefix in family.prefixes:
        name = name.removeprefix(prefix)
    if name.endswith("LayerNorm.gamma"):
        return name.removesuffix("gamma") + "weight"
    if name.endswith("LayerNorm.beta"):
        return name.removesuffix("beta") + "bias"
    return name


def read_shape(folder: Path) -> BodyShape:
    """Read the shape of a body from its config.json. Unsupported values raise a `UserError` that names them."""
    path = folder / "config.json"
    if not path.is_file():
        raise UserError(
            f"{path}: there is no such file; a body is a folder with config.json, model.safetensors and tokenizer.json"
        )
    config = read_json(path)
    return _family(config, path).read(config, path)


def _family(config: Mapping[str, Any], path: Path) -> Family:
    found, classes = config.get("model_type"), config.get("architectures")
    if isinstance(found, str) and found in FAMILIES:
        return FAMILIES[found]
    if found == "weft":
        raise UserError(f"{path}: is a task exported by weft; name the run that it came from, or the body beside it")
    named = f" ({', '.join(map(str, classes))})" if isinstance(classes, list) and classes else ""
    raise UserError(
        f"{path}: model_type is {found!r}{named}; this architecture is not supported. "
        f"Expected one of {', '.join(FAMILIES)}"
    )


def hugging_face_config(shape: BodyShape) -> dict[str, Any]:
    """Return the config.json entries that `transformers` needs."""
    return FAMILIES[shape.model_type].config(shape)


def saved_dtype(folder: Path) -> torch.dtype:
    """Return the dtype that a saved model computes in: that of its weights, at least float32."""
    try:
        with safe_open(folder / "model.safetensors", framework="pt") as file:
            kinds = {file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118 -- not a dict
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"{folder / 'model.safetensors'}: is not a readable safetensors file ({error})") from None
    return torch.float64 if "F64" in kinds else torch.float32


def write_config(shape: BodyShape, folder: Path, **settings: Any) -> None:
    """Write config.json as `transformers` does for the family's class. `settings` add or replace entries."""
    config = hugging_face_config(shape) | settings
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def read_tensors(folder: Path) -> tuple[dict[str, Tensor], Path]:
    """Read all tensors of a checkpoint folder on the CPU. Return them with the path of their file."""
    modern, old = folder / "model.safetensors", folder / "pytorch_model.bin"
    if modern.exists():
        try:
            return load_file(modern), modern
        except (SafetensorError, OSError, ValueError) as error:
            raise UserError(f"{modern}: is not a readable safetensors file ({error})") from None
    if old.exists():
        return load_archive(old), old
    raise UserError(f"{folder}: has neither model.safetensors nor pytorch_model.bin")


def cut_shape(shape: BodyShape, layers: int | None) -> BodyShape:
    """Return the shape of a body's first `layers` layers; None for all. Layers that share weights repeat less often."""
    if layers is not None and layers > shape.layers:
        raise UserError(f"layers: found {layers}, but the body has {shape.layers}")
    return replace(shape, layers=layers or shape.layers)


def load_body(
    folder: Path,
    *,
    dropout: float | None = None,
    attention_dropout: float | None = None,
    layers: int | None = None,
    mapped: bool = False,
) -> Body:
    """Load a body, or its first `layers` layers, from a Hugging Face folder, in fp32.

    A missing pooler keeps its random initialization. With `mapped`, fp32 tensors of a safetensors file stay in the
    memory-mapped file, so that all processes with this body share their memory; tensors that the family stacks
    (queries, keys and values) are copies. A write makes a private copy of the page. Replace such a file by renaming:
    a change in place would change the body.
    """
    whole = read_shape(folder)
    shape = cut_shape(whole, layers)
    shape = replace(
        shape,
        dropout=shape.dropout if dropout is None else dropout,
        attention_dropout=shape.attention_dropout if attention_dropout is None else attention_dropout,
    )
    tensors, file = read_tensors(folder)
    require_held(body_only(tensors, FAMILIES[shape.model_type]), file)
    with shapes_alone():  # shapes only: a config with wrong sizes must not exhaust memory
        planned = {name: parameter.shape for name, parameter in Body(shape).named_parameters()}
    found = from_hugging_face(tensors, whole, str(file))
    state = {name: tensor for name, tensor in found.items() if name in planned}
    table = names(shape)
    for name, tensor in state.items():
        theirs = " + ".join(table[name])
        if tensor.shape != planned[name]:
            raise UserError(
                f"{file}: {theirs} has shape {tuple(tensor.shape)}, but config.json asks for {tuple(planned[name])}"
            )
        if not tensor.is_floating_point():
            raise UserError(f"{file}: {theirs} holds {tensor.dtype}, expected floats")
    body = Body(shape)
    for name, parameter in body.named_parameters():
        if name not in state:
            continue
        if mapped and state[name].dtype == parameter.dtype:
            parameter.data = state[name]
        else:
            with torch.no_grad():
                parameter.copy_(state[name])
    return body
