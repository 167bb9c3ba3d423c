"""`weft remove`: the same model without some of its tasks."""

import shutil
from pathlib import Path

from weft.foundation.atomic import sync
from weft.foundation.errors import UserError
from weft.inference.model import load
from weft.runs.card import plain_card
from weft.runs.model_folder import model_folder, save_settings
from weft.tasks.building import build_network
from weft.tasks.store import copy_exactly, head_tensors, save_weights


def without_tasks(model: Path, tasks: list[str], to: Path, *, trust_code: bool = False) -> None:
    """Write a model folder to the empty folder `to`: the same body, without the heads of `tasks`."""
    folder = model_folder(model)
    loaded = load(folder, "cpu", trust_code=trust_code)
    for task in tasks:
        if task not in loaded.tasks:
            raise UserError(f"{folder}: the model has no task {task!r}; it has {', '.join(loaded.tasks)}")
    left = [name for name in loaded.tasks if name not in tasks]
    if not left:
        raise UserError(f"{folder}: {', '.join(tasks)} is all that the model has; a model needs a task")
    config = loaded.config.model_copy(update={"tasks": {name: loaded.config.tasks[name] for name in left}})
    counts = [config.tasks[name].share_head for name in left]
    for name in left:  # a head that no other task shares any more is the task's own
        if config.tasks[name].share_head is not None and counts.count(config.tasks[name].share_head) == 1:
            config.tasks[name] = config.tasks[name].model_copy(update={"share_head": None})
    labels = {name: loaded.labels[name] for name in left}
    state = loaded.network.state_dict()
    network = build_network(config, labels, folder, next(loaded.network.parameters()).dtype)
    heads = head_tensors(network)
    copy_exactly(heads, {name: state[name] for name in heads}, str(folder))
    save_weights(network, to)
    loaded.tokenizer.save(to, network.body.shape.positions, types=network.body.has_segments)
    temperatures = {name: own for name, own in loaded.temperatures.items() if name in left}
    save_settings(to, config, labels, temperatures)
    (to / "README.md").write_text(plain_card(config, network.body.family), encoding="utf-8")


def remove(model: Path, tasks: list[str], out: Path, *, trust_code: bool = False) -> None:
    """Write the model without `tasks` to the new folder `out`."""
    if out.exists():
        raise UserError(f"{out}: already exists; choose another folder with -o")
    temporary = out.with_name(f".{out.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        without_tasks(model, tasks, temporary, trust_code=trust_code)
        for path in temporary.iterdir():
            sync(path)
        temporary.rename(out)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
