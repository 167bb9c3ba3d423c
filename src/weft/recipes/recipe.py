"""The recipe: one file that describes a run completely."""

import copy
import tomllib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from weft.bodies.source import find_body
from weft.data.frames import SPLITS
from weft.data.task_files import locate
from weft.foundation.config import parse
from weft.foundation.content import put, toml_text
from weft.foundation.errors import UserError
from weft.foundation.own_code import names_code
from weft.foundation.shipped import TomlFile, load_toml
from weft.penalties import PenaltyConfig
from weft.recipes.library import find_shipped
from weft.schedules import ScheduleConfig
from weft.schedules.batch_round_robin import BatchRoundRobinConfig
from weft.surgery import SurgeryConfig
from weft.surgery.none import NoSurgeryConfig
from weft.tasks.config import ModelConfig
from weft.trackers import TrackerConfig
from weft.training.averaging import AverageConfig
from weft.training.checkpoint import CheckpointConfig
from weft.training.distillation import DistillConfig
from weft.training.optimizer import OptimizerConfig
from weft.training.outputs import CacheConfig
from weft.training.phases import Phase, PhaseConfig
from weft.training.step import LogConfig
from weft.training.trainable import FrozenConfig, FullConfig, TrainableConfig
from weft.weighting import WeightingConfig
from weft.weighting.sum import SumConfig


class Recipe(ModelConfig):
    """A model and its training."""

    model_config = ConfigDict(extra="forbid")
    written = tuple(
        "name body layers code seed epochs max_length dropout body_dropout segments patience dev_rows dev_sample "
        "calibrate trackers adapter tasks schedule trainable phases weighting surgery penalties optimizer distill "
        "average cache checkpoint log".split()
    )
    epochs: int = Field(ge=1)
    """Total number of epochs, as the schedule defines an epoch."""
    patience: int | None = Field(default=None, ge=1)
    """Stop after N evaluations without a better dev score. Defaults to no early stopping."""
    dev_rows: int | None = Field(default=None, ge=2)
    """Evaluate on at most N dev rows per task, the same rows for every seed. Defaults to all rows."""
    dev_sample: Literal["auto", "all"] | Annotated[int, Field(ge=2, strict=True)] = "auto"
    """Dev rows per task that evaluations during training score, the same rows for every seed: `"auto"`, `"all"` or a
    number. `"auto"` keeps the evaluations within about 5 % of the training time, with at least 500 rows per task. The
    sample selects the best epoch; the final scores are those of all dev rows."""
    trackers: tuple[TrackerConfig, ...] = ()
    """Trackers that the log is also sent to: tensorboard, mlflow."""
    schedule: ScheduleConfig = BatchRoundRobinConfig()
    trainable: TrainableConfig = FullConfig()
    """Which parameters are trained: full, frozen (only heads and adapters), or layers. Defaults to full, or to frozen
    if the recipe has an adapter."""
    phases: tuple[PhaseConfig, ...] | None = None
    """Phases of training, in order; their epochs must sum to `epochs`. Defaults to one phase."""
    weighting: WeightingConfig = SumConfig()
    surgery: SurgeryConfig = NoSurgeryConfig()
    penalties: tuple[PenaltyConfig, ...] = ()
    """Penalties on the weights or outputs of the whole model: l1, l2, bregman, bregman-weights."""
    optimizer: OptimizerConfig = OptimizerConfig()
    """Optimizer, learning rate, precision and accumulation."""
    distill: DistillConfig | None = None
    """Teachers whose predictions are trained on beside the labels. Defaults to no teachers."""
    average: AverageConfig | None = None
    """Average of the weights that is evaluated and saved instead of the weights themselves: ema or swa. Defaults to
    none."""
    cache: CacheConfig = CacheConfig()
    """What is stored of a frozen body's outputs."""
    checkpoint: CheckpointConfig = CheckpointConfig()
    """How often checkpoints are saved."""
    log: LogConfig = LogConfig()
    """What is logged in addition to losses and dev scores."""

    @model_validator(mode="before")
    @classmethod
    def _adapters_freeze_the_body(cls, content: Any) -> Any:
        """Freeze the body if the recipe has an adapter and does not say what to train."""
        if isinstance(content, dict) and content.get("adapter") is not None and "trainable" not in content:
            return content | {"trainable": FrozenConfig()}
        return content

    @model_validator(mode="after")
    def _epochs_of_phases(self) -> "Recipe":
        if self.phases is not None and sum(phase.epochs for phase in self.phases) != self.epochs:
            found = " + ".join(str(phase.epochs) for phase in self.phases)
            raise ValueError(f"`epochs` is {self.epochs}, but the phases have {found}; the sum must be `epochs`")
        return self

    def resolved_phases(self) -> list[Phase]:
        """The phases with all defaults filled in; a recipe without `phases` has one."""
        return [
            Phase(
                epochs=phase.epochs,
                trainable=phase.trainable or self.trainable,
                schedule=phase.schedule or self.schedule,
                lr=phase.lr or self.optimizer.lr,
            )
            for phase in self.phases or (PhaseConfig(epochs=self.epochs),)
        ]

    def modes(self) -> list[TrainableConfig]:
        """Trainable parameters of each phase."""
        return [phase.trainable for phase in self.resolved_phases()]


def load_recipe(
    source: str | Path | Mapping[str, Any],
    *,
    settings: Sequence[str] = (),
    body: str | None = None,
    seed: int | None = None,
    data_dir: Path | None = None,
    given: Mapping[str, Collection[str]] | None = None,
) -> Recipe:
    """Load a recipe by path, by shipped name or from a dictionary, apply overrides, and make all paths absolute.

    `given` names, for each task whose rows are given in Python, the splits that are.
    """
    file = find_recipe(source)
    content = file.content
    flags = {"seed": seed, "body": body}
    for setting in settings:
        key, value = parse_setting(setting)
        if flags.get(key) is not None:
            raise UserError(f"--set {setting}: --{key} {flags[key]} sets the same key; remove one of them")
        try:
            put(content, key, value)
        except ValueError as error:
            raise UserError(f"--set {setting}: {error}") from None
    if seed is not None:
        content["seed"] = seed
    recipe = with_given(parse_recipe(content, file.where), given or {})
    return resolve(recipe, file.folder, data_dir, body)


def with_given(recipe: Recipe, given: Mapping[str, Collection[str]]) -> Recipe:
    """The same recipe where these splits of these tasks are given in Python: they replace all files of the task."""
    tasks = dict(recipe.tasks)
    for name, splits in given.items():
        if name not in tasks:
            raise UserError(f"data: the recipe has no task {name!r}; it has {', '.join(tasks)}")
        data = tasks[name].data
        if data.dev_fraction is not None and "dev" in splits:
            raise UserError(f"tasks.{name}.data.dev_fraction: a dev split is given too; keep one of them")
        chosen = tuple(split for split in SPLITS if split in splits)
        tasks[name] = tasks[name].model_copy(update={"data": data.without_files().model_copy(update={"given": chosen})})
    return recipe.model_copy(update={"tasks": tasks})


def find_recipe(source: str | Path | Mapping[str, Any]) -> TomlFile:
    """Read the plain content of a recipe by path or shipped name; a dictionary is taken as it is."""
    if isinstance(source, Mapping):
        return TomlFile("recipe", Path(), copy.deepcopy(dict(source)))
    return load_toml(source, "recipe", lambda name: find_shipped(name).text)


def parse_recipe(content: Mapping[str, Any], where: str) -> Recipe:
    """Validate a recipe; one `UserError` lists every invalid key."""
    return parse(Recipe, content, where)


def resolve(recipe: Recipe, base: Path, data_dir: Path | None, body: str | None = None) -> Recipe:
    """Make all paths absolute, so that the recipe works from any folder.

    `body` replaces the recipe's body and is relative to the current working directory.
    """
    tasks = {}
    for name, task in recipe.tasks.items():
        if task.data.hub is not None:  # its splits are names, not paths
            tasks[name] = task
            continue
        splits = [split for split in ("train", "dev", "test", "unlabelled") if getattr(task.data, split) is not None]
        files = {split: str(locate(task.data, split, name, base, data_dir).resolve()) for split in splits}
        tasks[name] = task.model_copy(update={"data": task.data.model_copy(update=files)})
    chosen, start = (recipe.body, base) if body is None else (body, Path())
    folder = start / Path(chosen).expanduser()
    if not chosen.startswith("packaged:") and folder.is_dir():
        chosen = str(find_body(chosen, start).resolve())
    code = recipe.code
    if code is not None or names_code(recipe.content()):
        code = str((base / Path(code or "").expanduser()).resolve())
    distill = None if recipe.distill is None else recipe.distill.relative_to(base)
    return recipe.model_copy(update={"tasks": tasks, "body": chosen, "code": code, "distill": distill})


def recipe_toml(recipe: Recipe) -> str:
    """Format a recipe as TOML that loads to the same recipe."""
    return toml_text(recipe.content())


def parse_setting(setting: str) -> tuple[str, Any]:
    """Parse one `a.b=value`; the value is TOML, or else a plain string. `tasks.*.x` sets the key of every task."""
    key, equals, text = setting.partition("=")
    if not equals or not key.strip():
        raise UserError(f"--set {setting}: expected key=value, such as --set optimizer.lr=3e-5")
    try:
        return key.strip(), tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), text
