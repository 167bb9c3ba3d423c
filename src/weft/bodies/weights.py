"""Hugging Face's names and ours, as data that is read in both directions, and the checks on what is loaded."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
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
"""old checkpoints of several families hold the numbers 0, 1, 2, ..."""


def names(shape: BodyShape) -> dict[str, tuple[str, ...]]:
    """Our tensors -> Hugging Face's, for a body of this shape."""
    with torch.device("meta"):  # shapes alone
        return _names(Body(shape).state_dict(), shape)


def _names(tensors: Iterable[str], shape: BodyShape) -> dict[str, tuple[str, ...]]:
    """Each tensor's own entry; one whose module has no name in the family's table is an error."""
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
    """Our state -> Hugging Face's; stacked tensors are taken apart. A tensor without a place there is an error."""
    theirs: dict[str, Tensor] = {}
    for ours, parts in _names(state, shape).items():
        for name, piece in zip(parts, state[ours].chunk(len(parts)), strict=True):
            theirs[name] = piece.contiguous()
    return theirs


def from_hugging_face(theirs: Mapping[str, Tensor], shape: BodyShape, where: str) -> dict[str, Tensor]:
    """Hugging Face's state -> ours. Only the pooler may be absent; a name that is not the family's is an error."""
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
    """The body's tensors under the names that the family's own class gives them."""
    modern = {_modern(name, family): tensor for name, tensor in theirs.items()}
    return {name: tensor for name, tensor in modern.items() if not name.startswith((*family.not_body, *NOT_BODY))}


def _modern(name: str, family: Family) -> str:
    """Some checkpoints prefix everything with the family's name, and old ones say gamma and beta."""
    for prefix in family.prefixes:
        name = name.removeprefix(prefix)
    if name.endswith("LayerNorm.gamma"):
        return name.removesuffix("gamma") + "weight"
    if name.endswith("LayerNorm.beta"):
        return name.removesuffix("beta") + "bias"
    return name


def read_shape(folder: Path) -> BodyShape:
    """The shape of a body by its config.json, or a rejection that names what was found."""
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
    """What `transformers` must know of a body."""
    return FAMILIES[shape.model_type].config(shape)


def saved_dtype(folder: Path) -> torch.dtype:
    """The precision that a saved model computes in: that of its weights, at least float32."""
    try:
        with safe_open(folder / "model.safetensors", framework="pt") as file:
            kinds = {file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118 -- not a dict
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"{folder / 'model.safetensors'}: is not a readable safetensors file ({error})") from None
    return torch.float64 if "F64" in kinds else torch.float32


def write_config(shape: BodyShape, folder: Path, **settings: Any) -> None:
    """config.json as `transformers` writes it for the family's class; `settings` are added or replace its own."""
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
    shape = replace(
        shape,
        dropout=shape.dropout if dropout is None else dropout,
        attention_dropout=shape.attention_dropout if attention_dropout is None else attention_dropout,
    )
    tensors, file = read_tensors(folder)
    require_held(body_only(tensors, FAMILIES[shape.model_type]), file)
    state = from_hugging_face(tensors, shape, str(file))
    with shapes_alone():  # shapes alone: a config that lies about its size must not fill the memory
        planned = {name: parameter.shape for name, parameter in Body(shape).named_parameters()}
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
        if name in state:
            with torch.no_grad():
                parameter.copy_(state[name])
    return body
