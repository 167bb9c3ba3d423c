"""Saving and loading weights: the body in Hugging Face's layout, heads and adapters in files of their own."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from weft.bodies.body import Body
from weft.bodies.weights import from_hugging_face, read_tensors, to_hugging_face, write_config
from weft.foundation.atomic import give_usual_mode
from weft.foundation.errors import UserError
from weft.tasks.network import Network

HEADS = "heads.safetensors"
ADAPTERS = "adapters.safetensors"
REGULARIZER = "regularizer"
"""the module of a task that is used only in training: checkpoints save its state, models do not"""
Shape = tuple[int, ...]
FOR_TRANSFORMERS = {"format": "pt"}
"""metadata that `transformers` requires"""


def adapter_tensors(network: Network) -> dict[str, Tensor]:
    """Return the tensors of all adapters. Tensors that layers share have one name."""
    prefixes = ("adapter.", "adapters.")
    return {name: parameter for name, parameter in network.named_parameters() if name.startswith(prefixes)}


def head_tensors(network: Network) -> dict[str, Tensor]:
    """Return all tensors of tasks that inference needs, without adapters. Shared tensors have one name."""
    tensors: dict[str, Tensor] = {name: p for name, p in network.named_parameters() if name.startswith("tasks.")}
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
    """Write config.json, model.safetensors, heads.safetensors and, if there are adapters, adapters.safetensors.

    The body is saved as it is, without adapters: other libraries open it, and it stays the start of new tasks.
    """
    write_config(network.body.shape, folder)
    save_tensors(body_tensors(network.body), folder / "model.safetensors")
    for file, tensors in _files(network).items():
        save_tensors({key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}, folder / file)


def _files(network: Network) -> dict[str, dict[str, Tensor]]:
    """Return the tensors of each file beside the body's."""
    adapters = adapter_tensors(network)
    return {HEADS: head_tensors(network)} | ({ADAPTERS: adapters} if adapters else {})


def load_weights(network: Network, folder: Path) -> None:
    """Load all weights that `save_weights` wrote into a network of the same shape."""
    tensors, file = read_tensors(folder)
    saved = from_hugging_face(tensors, network.body.shape, str(file))
    copy_exactly(network.body.state_dict(), saved, str(file))
    load_heads(network, folder)


def load_heads(network: Network, folder: Path) -> None:
    """Load the heads and adapters of a network whose body is already loaded."""
    for file, tensors in _files(network).items():
        copy_exactly(tensors, load_tensors(folder / file), str(folder / file))


def require_planned_heads(planned: Network, folder: Path) -> None:
    """Raise UserError if the shapes of saved heads or adapters differ from the config's, before allocating memory."""
    for name, tensors in _files(planned).items():
        path = folder / name
        try:
            with safe_open(path, framework="pt") as file:
                saved = {key: tuple(file.get_slice(key).get_shape()) for key in file.keys()}  # noqa: SIM118 -- not a dict
        except (SafetensorError, OSError, ValueError) as error:
            raise UserError(f"{path}: is not a readable safetensors file ({error})") from None
        _require_same(_shapes(tensors), saved, str(path))


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
