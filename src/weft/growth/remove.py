"""`weft remove`: the same model without some of its tasks."""

from collections.abc import Sequence
from pathlib import Path

from weft.bodies.adapters import AdapterConfig
from weft.foundation.atomic import new_folder
from weft.foundation.errors import UserError
from weft.inference.model import load
from weft.runs.card import plain_card
from weft.runs.model_folder import model_folder, save_settings
from weft.tasks.building import build_network
from weft.tasks.store import adapter_tensors, copy_exactly, head_tensors, save_weights


def without_tasks(model: Path, tasks: list[str], to: Path, *, trust_code: bool = False) -> None:
    """Write a model folder to the empty folder `to`: the same body, without the heads and adapters of
    `tasks`."""
    folder = model_folder(model)
    loaded = load(folder, "cpu", trust_code=trust_code)
    for task in tasks:
        if task not in loaded.tasks:
            raise UserError(f"{folder}: the model has no task {task!r}; it has {', '.join(loaded.tasks)}")
    left = [name for name in loaded.tasks if name not in tasks]
    if not left:
        raise UserError(f"{folder}: {', '.join(tasks)} is all that the model has; a model needs a task")
    tasks_left = {name: loaded.config.tasks[name] for name in left}
    config = loaded.config.model_copy(update={"tasks": tasks_left, "adapter": adapter_for(loaded.config.adapter, left)})
    counts = [config.tasks[name].share_head for name in left]
    for name in left:  # a head that no other task shares any more is the task's own
        if config.tasks[name].share_head is not None and counts.count(config.tasks[name].share_head) == 1:
            config.tasks[name] = config.tasks[name].model_copy(update={"share_head": None})
    labels = {name: loaded.labels[name] for name in left}
    state = loaded.network.state_dict()
    network = build_network(config, labels, folder, next(loaded.network.parameters()).dtype)
    tensors = head_tensors(network) | adapter_tensors(network)
    copy_exactly(tensors, {name: state[name] for name in tensors}, str(folder))
    save_weights(network, to)
    loaded.tokenizer.save(to, network.body.shape.positions, types=network.body.has_segments)
    temperatures = {name: own for name, own in loaded.temperatures.items() if name in left}
    save_settings(to, config, labels, temperatures)
    (to / "README.md").write_text(plain_card(config, network.body.family), encoding="utf-8")


def adapter_for(adapter: AdapterConfig | None, tasks: Sequence[str]) -> AdapterConfig | None:
    """Return the same adapter for some of a model's tasks; None if none of them has an adapter."""
    if adapter is None or adapter.tasks is None:
        return adapter
    owners = tuple(name for name in adapter.tasks if name in tasks)
    return adapter.model_copy(update={"tasks": owners}) if owners else None


def remove(model: Path, tasks: list[str], out: Path, *, trust_code: bool = False) -> None:
    """Write the model without `tasks` to the new folder `out`."""
    with new_folder(out) as folder:
        without_tasks(model, tasks, folder, trust_code=trust_code)
