"""All objects of a run, built but not yet trained."""

from dataclasses import dataclass

from weft.data.dataset import Dataset
from weft.data.tokenizer import Tokenizer
from weft.foundation.own_code import SourceFile
from weft.kinds.labels import Labels
from weft.recipes.recipe import Recipe
from weft.schedules.plan import Plan, Stretched
from weft.tasks.network import Network
from weft.training.distillation import TeacherPredictions
from weft.training.phases import Rates
from weft.training.step import Step


@dataclass(frozen=True)
class TaskData:
    """Labels and rows of one task."""

    labels: Labels
    train: Dataset
    dev: Dataset


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
    notes: list[str]
    """what the user should know before trusting the scores"""
    lessons: dict[str, TeacherPredictions]
    """predictions of the teachers of each task that has any"""

    @property
    def rates(self) -> Rates:
        """Learning rate of every step."""
        return learning_rates(self.recipe, self.plan)

    def train_sample(self) -> dict[str, Dataset]:
        """Sample of train rows that every evaluation scores in addition to the dev rows."""
        rows = self.recipe.log.train_rows
        return {name: task.train.sample(rows, self.recipe.seed) for name, task in self.data.items()} if rows else {}


def learning_rates(recipe: Recipe, plan: Plan) -> Rates:
    """Build the learning rate curve of a recipe. Under a budget, warm-up is scaled with the run."""
    stretch = plan.stretch if isinstance(plan, Stretched) else 1.0
    return Rates(plan, recipe.resolved_phases(), recipe.optimizer, stretch)
