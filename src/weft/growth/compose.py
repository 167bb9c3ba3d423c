"""The recipe that adds the tasks of one recipe to a trained model."""

from pathlib import Path
from typing import Literal, get_args

from weft.bodies.adapters import AdapterConfig
from weft.foundation.content import Content
from weft.foundation.errors import UserError
from weft.recipes.recipe import Recipe
from weft.runs.model_folder import ModelSettings
from weft.schedules import ScheduleConfig
from weft.tasks.config import ModelConfig, TaskConfig
from weft.training.phases import PhaseConfig
from weft.training.trainable import FrozenConfig

Keep = Literal["exact", "rehearse"]
"""How the old tasks are kept: frozen, or trained together with the new ones."""
KEEPS: tuple[str, ...] = get_args(Keep)
OF_THE_MODEL = ("seed", "max_length", "segments")
"""Keys that determine what the old tasks read, so they are always the model's."""
MORE = "-more"
"""Ends the name under which additional rows of an old task are trained, with the head of that task."""


def grown_recipe(folder: Path, model: ModelSettings, recipe: Recipe, keep: Keep) -> Recipe:
    """Return a recipe with the tasks of the model and those of `recipe`, which starts from the model.

    All training keys are those of `recipe`. A task that both have is more data for an old task: it keeps the old rows
    and gets those of the recipe too, in a task `NAME-more` with the same head.
    """
    for key in OF_THE_MODEL:
        wanted, own = getattr(recipe, key), getattr(model.config, key)
        if key in recipe.model_fields_set and wanted != own:
            raise UserError(f"{key}: found {wanted}, but {folder} was trained with {own}; remove the key")
    old = {name: _with_labels(task, model, name) for name, task in model.config.tasks.items()}
    more = [name for name in recipe.tasks if name in old]
    if more and keep == "exact":
        raise UserError(
            f"tasks.{more[0]}: {folder} has this task, and more data would change its answers; "
            "use --keep rehearse, or give the new task another name"
        )
    tasks = dict(old)
    for name, task in recipe.tasks.items():
        if name in old:
            head = old[name].share_head or name
            tasks[name] = old[name].model_copy(update={"share_head": head})
            own = {"data": task.data, "batch_size": task.batch_size, "range": model.labels[name].limits}
            tasks[name + MORE] = tasks[name].model_copy(update=own)
        else:
            tasks[name] = task
    of_the_model = {key: getattr(model.config, key) for key in OF_THE_MODEL}
    new = [name for name in recipe.tasks if name not in old]
    adapter = _grown_adapter(folder, model.config, recipe, new, keep)
    grown = recipe.model_copy(update={**of_the_model, "body": str(folder), "tasks": tasks, "adapter": adapter})
    if keep == "exact":
        return _frozen(grown, list(recipe.tasks))
    if adapter is not None and "trainable" not in recipe.model_fields_set:
        return grown.model_copy(update={"trainable": FrozenConfig()})
    return grown


def _grown_adapter(
    folder: Path, model: ModelConfig, recipe: Recipe, new: list[str], keep: Keep
) -> AdapterConfig | None:
    """Return the adapter of the grown model: that of the model, extended to the new tasks if the recipe names it."""
    before, now = model.adapter, recipe.adapter
    if now is not None and keep == "exact" and not now.per_task:
        raise UserError("adapter: --keep exact gives new tasks adapters of their own; set per_task = true")
    if now is not None and before is not None and _plain(now) != _plain(before):
        raise UserError(f"adapter: differs from that of {folder}, and a model has one kind; remove or copy the table")
    found = now if now is not None else before
    if found is None or not found.per_task or (before is None and keep == "rehearse"):
        return found
    owners = () if before is None else before.tasks or tuple(model.tasks)
    added = () if now is None else now.tasks or tuple(new)
    more = [name + MORE for name in owners if name in recipe.tasks]  # these rows train the adapter of the task
    return found.model_copy(update={"tasks": tuple(dict.fromkeys([*owners, *added, *more]))})


def _plain(adapter: AdapterConfig) -> Content:
    """Return the settings that all tasks with such an adapter share."""
    return adapter.model_dump(mode="json", exclude={"tasks"})


def additions(recipe: Recipe) -> list[str]:
    """Return the tasks of a grown recipe that only carry more data for another task."""
    return [name for name in recipe.tasks if name.endswith(MORE) and name.removesuffix(MORE) in recipe.tasks]


def _with_labels(task: TaskConfig, model: ModelSettings, name: str) -> TaskConfig:
    """Declare the classes that the model knows, so that its head fits whatever the rows contain."""
    names = model.labels[name].names
    return task.model_copy(update={"labels": names}) if names else task


def _frozen(recipe: Recipe, new: list[str]) -> Recipe:
    """Train the heads and adapters of the new tasks only; the old tasks are scored.

    A shared adapter stays as it is: the answers of the old tasks depend on it.
    """
    for number, phase in enumerate(recipe.phases or ()):
        if phase.trainable is not None and not isinstance(phase.trainable, FrozenConfig):
            raise UserError(f"phases.{number}.trainable: --keep exact freezes the body; remove the key")
    if "trainable" in recipe.model_fields_set and not isinstance(recipe.trainable, FrozenConfig):
        raise UserError(
            f"trainable: found {recipe.trainable.name!r}, but --keep exact freezes the body; remove the key"
        )
    phases = None if recipe.phases is None else tuple(_only(phase, new) for phase in recipe.phases)
    schedule = _of_tasks(recipe.schedule, new)
    own_adapters = recipe.adapter is not None and recipe.adapter.per_task
    adapts = own_adapters or recipe.adapter is None
    asked = recipe.trainable if isinstance(recipe.trainable, FrozenConfig) else FrozenConfig()
    frozen = asked.model_copy(update={"adapters": adapts})
    return recipe.model_copy(update={"trainable": frozen, "schedule": schedule, "phases": phases})


def _only(phase: PhaseConfig, new: list[str]) -> PhaseConfig:
    if phase.trainable is not None:  # it freezes the body too, as does the recipe's
        phase = phase.model_copy(update={"trainable": None})
    if phase.schedule is None:
        return phase
    return phase.model_copy(update={"schedule": _of_tasks(phase.schedule, new)})


def _of_tasks(schedule: ScheduleConfig, new: list[str]) -> ScheduleConfig:
    return schedule if schedule.tasks else schedule.model_copy(update={"tasks": tuple(new)})
