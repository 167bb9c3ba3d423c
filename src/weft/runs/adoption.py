"""Initializes heads from the trained model that a run starts from."""

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from weft.foundation.content import Content
from weft.runs.folder import RunPaths
from weft.runs.model_folder import read_model
from weft.tasks.config import ModelConfig
from weft.tasks.network import Network
from weft.tasks.store import ADAPTERS, adapter_tensors, copy_exactly, head_owners, heads_by_task, load_tensors


@dataclass(frozen=True)
class Adoption:
    """Which heads of the initial model a run keeps."""

    tasks: frozenset[str] = frozenset()
    """tasks whose heads start with the weights of the model"""
    notes: tuple[str, ...] = ()


def adopt_heads(network: Network, recipe: ModelConfig, folder: Path) -> Adoption:
    """If the body is a weft model, load its heads for the tasks that have not changed; the notes list them."""
    if not (folder / "weft.json").exists():
        return Adoption()
    model = read_model(folder)
    saved = load_tensors(folder / "heads.safetensors")
    notes = []
    adopted = set()
    for name, tensors in heads_by_task(network).items():
        if not tensors:
            continue  # a head without weights, or shared and owned by another task
        if name not in model.labels:
            notes.append(f"{name}: is not in {folder}; its head is initialized at random")
        elif model.labels[name] != network.task(name).labels:
            notes.append(f"{name}: has other labels in {folder}; its head is initialized at random")
        elif any(key not in saved or saved[key].shape != tensor.shape for key, tensor in tensors.items()):
            notes.append(f"{name}: has another head in {folder}; its head is initialized at random")
        else:
            copy_exactly(tensors, {key: saved[key] for key in tensors}, str(folder))
            adopted.add(name)
            notes.append(f"{name}: starts with the head of {folder}{_changed(name, model.config, recipe)}")
    notes += _adopt_adapters(network, recipe, model.config, folder)
    for name in network.tasks:
        owners = head_owners(network, name) - {name}
        if owners:
            start = f"starts with that of {folder}" if owners <= adopted else "is initialized at random"
            notes.append(f"{name}: shares the head of {', '.join(sorted(owners))}, which {start}")
            if owners <= adopted and (name in adopted or not heads_by_task(network)[name]):
                adopted.add(name)
    dropped = [name for name in model.config.tasks if name not in recipe.tasks]
    if dropped:
        it, tasks = ("it", "task") if len(dropped) == 1 else ("them", "tasks")
        source = RunPaths(folder.parent).recipe
        notes.append(
            f"{folder} also has the {tasks} {', '.join(dropped)}, which this recipe does not name: the new model will "
            f"not have {it}. To keep {it}, add {', '.join(f'[tasks.{name}]' for name in dropped)} to the recipe"
            f"{f' as in {source}' if source.is_file() else ''}; with body = {str(folder)!r}, tasks that have the same "
            "name, labels and head start with their trained heads"
        )
    return Adoption(frozenset(adopted), tuple(notes))


def _adopt_adapters(network: Network, recipe: ModelConfig, before: ModelConfig, folder: Path) -> list[str]:
    """Load the adapters of the model where the recipe asks for the same; return notes about them."""
    if before.adapter is None:
        return []
    if _adapter_content(before) != _adapter_content(recipe):
        wanted = "names no adapter" if recipe.adapter is None else "names another one"
        return [f"the adapters of {folder} are not used, because this recipe {wanted}; its body starts without them"]
    saved, notes = load_tensors(folder / ADAPTERS), []
    by_owner: dict[str, dict[str, Tensor]] = {}
    for key, tensor in adapter_tensors(network).items():
        by_owner.setdefault(key.split(".")[1] if recipe.adapter and recipe.adapter.per_task else "", {})[key] = tensor
    for owner, tensors in by_owner.items():
        whose = f"{owner}: its adapter" if owner else "the adapter of all tasks"
        if tensors.keys() <= saved.keys():
            copy_exactly(tensors, {key: saved[key] for key in tensors}, str(folder / ADAPTERS))
            notes.append(f"{whose} starts with that of {folder}")
        else:
            notes.append(f"{whose} is not in {folder} and starts without effect")
    return notes


def _adapter_content(config: ModelConfig, task: str | None = None) -> Content | None:
    """Return what determines the effect of an adapter's weights; None if the model, or the task, has no adapter."""
    content: Content | None = config.content().get("adapter")
    if task is not None and content is not None and content.get("tasks") is not None and task not in content["tasks"]:
        return None
    return (
        None if content is None else {key: value for key, value in content.items() if key not in ("tasks", "dropout")}
    )


def _changed(task: str, before: ModelConfig, now: ModelConfig) -> str:
    """Describe which settings under a trained head differ now."""
    # compares serialized content: a component named by `use` is imported in the recipe, but not in the saved model
    old, new = before.content()["tasks"][task], now.content()["tasks"][task]
    keys = [key for key in ("reading", "long_texts", "pooling", "layer", "head") if old.get(key) != new.get(key)]
    keys += ["adapter"] if _adapter_content(before, task) != _adapter_content(now, task) else []
    return f", which was trained with another {' and '.join(keys)}" if keys else ""
