"""The recipe that adds the tasks of one recipe to a trained model."""

from pathlib import Path
from typing import Literal, get_args

from weft.foundation.errors import UserError
from weft.recipes.recipe import Recipe
from weft.runs.model_folder import ModelSettings
from weft.schedules import ScheduleConfig
from weft.tasks.config import TaskConfig
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
    grown = recipe.model_copy(update={**of_the_model, "body": str(folder), "tasks": tasks})
    return _frozen(grown, list(recipe.tasks)) if keep == "exact" else grown


def additions(recipe: Recipe) -> list[str]:
    """Return the tasks of a grown recipe that only carry more data for another task."""
    return [name for name in recipe.tasks if name.endswith(MORE) and name.removesuffix(MORE) in recipe.tasks]


def _with_labels(task: TaskConfig, model: ModelSettings, name: str) -> TaskConfig:
    """Declare the classes that the model knows, so that its head fits whatever the rows contain."""
    names = model.labels[name].names
    return task.model_copy(update={"labels": names}) if names else task


def _frozen(recipe: Recipe, new: list[str]) -> Recipe:
    """Train the heads of the new tasks only; the old tasks are scored."""
    for number, phase in enumerate(recipe.phases or ()):
        if phase.trainable is not None and not isinstance(phase.trainable, FrozenConfig):
            raise UserError(f"phases.{number}.trainable: --keep exact freezes the body; remove the key")
    if "trainable" in recipe.model_fields_set and not isinstance(recipe.trainable, FrozenConfig):
        raise UserError(
            f"trainable: found {recipe.trainable.name!r}, but --keep exact freezes the body; remove the key"
        )
    phases = None if recipe.phases is None else tuple(_only(phase, new) for phase in recipe.phases)
    schedule = _of_tasks(recipe.schedule, new)
    return recipe.model_copy(update={"trainable": FrozenConfig(), "schedule": schedule, "phases": phases})


def _only(phase: PhaseConfig, new: list[str]) -> PhaseConfig:
    if phase.schedule is None:
        return phase
    return phase.model_copy(update={"schedule": _of_tasks(phase.schedule, new)})


def _of_tasks(schedule: ScheduleConfig, new: list[str]) -> ScheduleConfig:
    return schedule if schedule.tasks else schedule.model_copy(update={"tasks": tuple(new)})
