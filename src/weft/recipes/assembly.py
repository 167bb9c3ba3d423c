"""All objects of a run, built but not yet trained."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property

from weft.data.dataset import Dataset
from weft.data.tokenizer import Tokenizer
from weft.data.tokens import TokenizedFile
from weft.foundation.own_code import SourceFile
from weft.kinds.labels import Labels
from weft.recipes.recipe import Recipe
from weft.schedules.plan import Plan, Stretched
from weft.tasks.network import Network
from weft.training.distillation import TeacherPredictions
from weft.training.distributed import SOLO, Processes
from weft.training.frozen import FrozenOutputs
from weft.training.phases import Rates
from weft.training.step import Step


@dataclass(frozen=True)
class TaskData:
    """Labels and rows of one task."""

    labels: Labels
    train: Dataset
    """rows with a label; none if the task has no train file"""
    dev: Dataset
    unlabelled: TokenizedFile | None = None
    """rows without labels, which only teachers predict"""
    lesson: TeacherPredictions | None = None
    """predictions of the task's teachers, if it has any"""

    @cached_property
    def fed(self) -> Dataset:
        """The rows that training draws from."""
        rows = self.train if self.unlabelled is None else self.train.with_unlabelled(self.unlabelled)
        return rows if self.lesson is None else rows.taught_by(self.lesson)


def fed_rows(data: Mapping[str, TaskData]) -> dict[str, Dataset]:
    """Return the rows that training draws from, of each task that has any."""
    return {name: task.fed for name, task in data.items() if len(task.fed)}


@dataclass(frozen=True)
class Assembly:
    """All objects of a run, built and checked; nothing is written yet."""

    recipe: Recipe
    """the recipe, with all components that it names by `use` imported"""
    code: dict[str, SourceFile]
    """address of each of these components -> the file that defines it"""
    tokenizer: Tokenizer
    data: dict[str, TaskData]
    network: Network
    plan: Plan
    step: Step
    untrained: list[str]
    """tasks that are evaluated but get no batch"""
    dev_sample: dict[str, Dataset]
    """dev rows of each task that evaluations during training score"""
    notes: list[str]
    """what the user should know before trusting the scores"""

    @property
    def lessons(self) -> dict[str, TeacherPredictions]:
        """Predictions of the teachers of each task that has any."""
        return {name: task.lesson for name, task in self.data.items() if task.lesson is not None}

    @property
    def samples_dev(self) -> bool:
        """Whether evaluations during training score fewer than all dev rows."""
        return any(len(rows) < len(self.data[name].dev) for name, rows in self.dev_sample.items())

    @property
    def rates(self) -> Rates:
        """Learning rate of every step."""
        return learning_rates(self.recipe, self.plan)

    def frozen_outputs(self, scored: Sequence[Mapping[str, Dataset]], processes: Processes = SOLO) -> FrozenOutputs:
        """What is stored of the frozen body's outputs; `scored` are the data sets of an evaluation."""
        recipe = self.recipe
        averaged = recipe.average is not None
        return FrozenOutputs(recipe.cache, self.step, self.plan, recipe.modes(), scored, processes, averaged=averaged)

    def train_sample(self) -> dict[str, Dataset]:
        """Sample of train rows that every evaluation scores in addition to the dev rows."""
        rows, seed = self.recipe.log.train_rows, self.recipe.seed
        labelled = {name: task.train for name, task in self.data.items() if rows and len(task.train)}
        # copies: what is stored of the rows that are scored is not what is stored of those that are trained
        return {name: copy(train).sample(rows, seed) for name, train in labelled.items()}


def learning_rates(recipe: Recipe, plan: Plan) -> Rates:
    """Build the learning rate curve of a recipe. Under a budget, warm-up is scaled with the run."""
    stretch = plan.stretch if isinstance(plan, Stretched) else 1.0
    return Rates(plan, recipe.resolved_phases(), recipe.optimizer, stretch)
