"""The recipe that adds the tasks of one recipe to a trained model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

from weft.bodies.adapters import AdapterConfig
from weft.data.config import DataConfig
from weft.data.task_files import locate
from weft.foundation.content import Content
from weft.foundation.errors import UserError
from weft.kinds import KINDS
from weft.recipes.recipe import Recipe
from weft.runs.model_folder import ModelSettings, model_folder
from weft.schedules import ScheduleConfig
from weft.tasks.config import ModelConfig, TaskConfig
from weft.training.distillation import DistillConfig
from weft.training.phases import PhaseConfig
from weft.training.trainable import FrozenConfig

Keep = Literal["exact", "rehearse", "distill"]
"""How the old tasks are kept: frozen, trained on their data, or trained on the answers of the old model."""
KEEPS: tuple[Keep, ...] = get_args(Keep)
OF_THE_MODEL = ("seed", "max_length", "segments")
"""Keys that determine what the old tasks read, so they are always the model's."""
MORE = "-more"
"""Ends the name under which additional rows of an old task are trained, with the head of that task."""


def grown_recipe(
    folder: Path,
    model: ModelSettings,
    recipe: Recipe,
    keep: Keep,
    data_dir: Path | None = None,
    files: Mapping[str, Path] | None = None,
) -> Recipe:
    """Return a recipe with the tasks of the model and those of `recipe`, which starts from the model.

    All training keys are those of `recipe`. A task that both have is more data for an old task: it keeps the old rows
    and gets those of the recipe too, in a task `NAME-more` with the same head. `files` are dev files of old tasks that
    replace theirs. With `exact` the old tasks are scored only; with `distill` they get rows without labels instead of
    their train files.
    """
    for key in OF_THE_MODEL:
        wanted, own = getattr(recipe, key), getattr(model.config, key)
        if key in recipe.model_fields_set and wanted != own:
            raise UserError(f"{key}: found {wanted}, but {folder} was trained with {own}; remove the key")
    old = _old_tasks(folder, model, keep, data_dir, files or {})
    more = [name for name in recipe.tasks if name in old]
    if more and keep == "exact":
        raise UserError(
            f"tasks.{more[0]}: {folder} has this task, and more data would change its answers; "
            "use --keep rehearse or distill, or give the new task another name"
        )
    tasks = dict(old)
    for name, task in recipe.tasks.items():
        if name in old:
            head = old[name].share_head or name
            tasks[name] = old[name].model_copy(update={"share_head": head})
            labels = model.labels[name]
            own = {"data": task.data, "batch_size": task.batch_size, "auxiliary": True}
            declared = {"range": labels.limits, "labels": labels.names or None}
            tasks[name + MORE] = tasks[name].model_copy(update=own | declared)
        else:
            tasks[name] = task
    of_the_model = {key: getattr(model.config, key) for key in OF_THE_MODEL}
    new = [name for name in recipe.tasks if name not in old]
    adapter = _grown_adapter(folder, model.config, recipe, new, keep)
    grown = recipe.model_copy(update={**of_the_model, "body": str(folder), "tasks": tasks, "adapter": adapter})
    if keep == "exact":
        return _frozen(grown, list(recipe.tasks))
    if keep == "distill":
        grown = grown.model_copy(update={"distill": _with_teacher(recipe.distill, folder)})
    if adapter is not None and "trainable" not in recipe.model_fields_set:
        return grown.model_copy(update={"trainable": FrozenConfig()})
    return grown


def _old_tasks(
    folder: Path, model: ModelSettings, keep: Keep, data_dir: Path | None, files: Mapping[str, Path]
) -> dict[str, TaskConfig]:
    """Return the tasks of the model with the data that `keep` needs."""
    for name in files:
        if name not in model.config.tasks:
            raise UserError(f"--file {name}: {folder} has no such task; it has {', '.join(model.config.tasks)}")
    tasks = {}
    for name, task in model.config.tasks.items():
        if keep == "distill" and not KINDS[task.kind].distills:
            raise UserError(
                f"tasks.{name}: the answers of a task with kind = {task.kind!r} cannot be distilled; use --keep exact "
                "or rehearse"
            )
        data = _located(task.data, name, data_dir)
        if name in files:
            data = _with_dev(data, name, files[name], keep)
        if keep == "distill":
            data = _without_train(data)
        own = _with_labels(task, model, name) if keep == "rehearse" else task
        tasks[name] = own.model_copy(update={"data": data})
    return _drawn_together(tasks) if keep == "distill" else tasks


def _located(data: DataConfig, task: str, data_dir: Path | None) -> DataConfig:
    """Return the same data with the files of a preset in --data-dir."""
    if data_dir is None or data.preset is None:
        return data
    splits = [split for split in ("train", "dev", "test") if getattr(data, split) is not None]
    found = {split: str(locate(data, split, task, Path(), data_dir).resolve()) for split in splits}
    return data.model_copy(update=found)


def _with_dev(data: DataConfig, task: str, file: Path, keep: Keep) -> DataConfig:
    """Return the same data with another dev file."""
    if data.hub is not None and keep == "rehearse":
        raise UserError(f"--file {task}: the train rows of this task are on the hub, and so are its dev rows")
    given = tuple(split for split in data.given or () if split != "dev") or None
    cleared = dict.fromkeys(("dev_fraction", "dev_seed", "hub", "preset"))
    return data.model_copy(update={"dev": str(file.resolve()), "given": given, **cleared})


def _without_train(data: DataConfig) -> DataConfig:
    """Return the same data with rows without labels, which `weft add` makes, instead of train rows.

    Rows that were held out from the train file stay the dev rows.
    """
    held_out = data.dev_fraction is not None and data.train is not None
    given = tuple(split for split in data.given or () if split != "train" or data.dev_fraction is not None)
    changes = {"train": None, "unlabelled": None, "given": (*given, "unlabelled")}
    return data.model_copy(update=changes | ({"dev": data.train, "preset": None} if held_out else {}))


def _drawn_together(tasks: Mapping[str, TaskConfig]) -> dict[str, TaskConfig]:
    """Return the tasks with one batch size for those that read one text, and one for those that read pairs.

    They get the same texts, so that those with the same columns and reading are drawn together.
    """
    sizes: dict[bool, int] = {}
    for task in tasks.values():
        pairs = task.data.text2 is not None
        sizes[pairs] = max(sizes.get(pairs, 0), task.batch_size)
    return {
        name: task.model_copy(update={"batch_size": sizes[task.data.text2 is not None]}) for name, task in tasks.items()
    }


def _with_teacher(distill: DistillConfig | None, folder: Path) -> DistillConfig:
    """Return the recipe's distillation with the old model as a further teacher."""
    if distill is None:
        return DistillConfig(teachers=(str(folder),))
    others = [name for name in distill.teachers if model_folder(Path(name)).resolve() != folder.resolve()]
    return distill.model_copy(update={"teachers": (str(folder), *others)})


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
    if found is None or not found.per_task or (before is None and keep != "exact"):
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
