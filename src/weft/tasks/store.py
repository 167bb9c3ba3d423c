"""Saving and loading weights: the body in Hugging Face's layout, the heads in heads.safetensors."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from weft.bodies.body import Body
from weft.bodies.weights import to_hugging_face, write_config
from weft.foundation.atomic import give_usual_mode
from weft.foundation.errors import UserError
from weft.tasks.network import Network

BODY = "body."
REGULARIZER = "regularizer"
"""the module of a task that is used only in training: checkpoints save its state, models do not"""
Shape = tuple[int, ...]
FOR_TRANSFORMERS = {"format": "pt"}
"""metadata that `transformers` requires"""


def head_tensors(network: Network) -> dict[str, Tensor]:
    """Return all tensors that inference needs, except those of the body. Shared tensors have one name."""
    tensors: dict[str, Tensor] = {name: p for name, p in network.named_parameters() if not name.startswith(BODY)}
    kept = network.state_dict().keys()  # class weights are for training only
    tensors |= {name: buffer for name, buffer in network.named_buffers() if name in kept}
    return {name: tensor for name, tensor in tensors.items() if name.split(".")[2:3] != [REGULARIZER]}


def body_tensors(body: Body, layers: int | None = None) -> dict[str, Tensor]:
    """Return the body's tensors under Hugging Face's names; only the first `layers` layers if given."""
    kept = body.shape.layers if layers is None else layers
    dropped = tuple(f"layers.{k}." for k in range(kept, body.shape.layers) if len(body.layers) > 1)
    # parameters and persistent buffers; `to_hugging_face` fails if one of them has no Hugging Face name
    state = {name: tensor.detach().cpu() for name, tensor in body.state_dict().items() if not name.startswith(dropped)}
    if body.has_segments and not body.embeddings.use_segments:
        # other libraries use type 1 for the second text, so it must equal type 0
        types = state["embeddings.segments.weight"]
        state["embeddings.segments.weight"] = types[:1].repeat(len(types), 1)
    return to_hugging_face(state, replace(body.shape, layers=kept))


def save_tensors(tensors: dict[str, Tensor], path: Path) -> None:
    """Write a safetensors file with the usual file mode; the library makes its files private."""
    save_file(tensors, path, metadata=FOR_TRANSFORMERS)
    give_usual_mode(path)


def save_weights(network: Network, folder: Path) -> None:
    """Write config.json, model.safetensors and heads.safetensors."""
    write_config(network.body.shape, folder)
    save_tensors(body_tensors(network.body), folder / "model.safetensors")
    heads = {name: tensor.detach().cpu().contiguous() for name, tensor in head_tensors(network).items()}
    save_tensors(heads, folder / "heads.safetensors")


def load_heads(network: Network, folder: Path) -> None:
    """Load the heads of a network whose body is already loaded."""
    path = folder / "heads.safetensors"
    copy_exactly(head_tensors(network), load_tensors(path), str(path))


def require_planned_heads(planned: Network, folder: Path) -> None:
    """Raise UserError if the shapes of the saved heads differ from the configured ones, before allocating memory."""
    path = folder / "heads.safetensors"
    try:
        with safe_open(path, framework="pt") as file:
            saved = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118 -- not a dict
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"{path}: is not a readable safetensors file ({error})") from None
    _require_same(_shapes(head_tensors(planned)), saved, str(path))


def heads_by_task(network: Network) -> dict[str, dict[str, Tensor]]:
    """Return the head tensors of each task."""
    tensors = head_tensors(network)
    return {
        name: {key: tensor for key, tensor in tensors.items() if key.startswith(f"tasks.{name}.")}
        for name in network.tasks
    }


def head_owners(network: Network, task: str) -> set[str]:
    """Return the tasks in the names of a task's head tensors: the task, and tasks whose heads it shares."""
    names = {id(tensor): name for name, tensor in head_tensors(network).items()}
    module = network.task(task)
    used = [names[id(tensor)] for tensor in (*module.parameters(), *module.buffers()) if id(tensor) in names]
    return {name.split(".")[1] for name in used}


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file; raise UserError if it is damaged."""
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"{path}: is not a readable safetensors file ({error})") from None


@torch.no_grad()
def copy_exactly(into: dict[str, Tensor], saved: dict[str, Tensor], where: str) -> None:
    """Copy named tensors; raise UserError for a missing or unexpected name or shape."""
    _require_same(_shapes(into), _shapes(saved), where)
    for name, tensor in into.items():
        tensor.copy_(saved[name])


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, Shape]:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def _require_same(expected: Mapping[str, Shape], saved: Mapping[str, Shape], where: str) -> None:
    if expected.keys() != saved.keys():
        odd = sorted(expected.keys() ^ saved.keys())[0]
        found = "is missing" if odd in expected else "is not expected"
        raise UserError(f"{where}: tensor {odd} {found}; the file belongs to another model")
    for name, shape in expected.items():
        if shape != saved[name]:
            raise UserError(f"{where}: tensor {name} has shape {saved[name]}, expected {shape}")
