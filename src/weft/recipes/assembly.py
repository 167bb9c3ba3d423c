"""Everything that a run is made of, between building it and training it."""

from dataclasses import dataclass

from weft.data.dataset import Dataset
from weft.data.tokenizer import Tokenizer
from weft.foundation.own_code import SourceFile
from weft.kinds.labels import Labels
from weft.recipes.recipe import Recipe
from weft.schedules.plan import Plan, Stretched
from weft.tasks.network import Network
from weft.training.phases import Rates
from weft.training.step import Step


@dataclass(frozen=True)
class TaskData:
    labels: Labels
    train: Dataset
    dev: Dataset


@dataclass(frozen=True)
class Assembly:
    """Everything a run is made of, built and checked; nothing is written yet."""

    recipe: Recipe
    """with all parts that it names by `use` imported"""
    code: dict[str, SourceFile]
    """address of each of these parts -> the file that defines it"""
    tokenizer: Tokenizer
    data: dict[str, TaskData]
    network: Network
    plan: Plan
    step: Step
    untrained: list[str]
    """tasks that are scored but get no batch"""
    notes: list[str]
    """what the user should know before trusting the scores"""

    @property
    def rates(self) -> Rates:
        """The learning rate of every step."""
        return learning_rates(self.recipe, self.plan)

    def train_sample(self) -> dict[str, Dataset]:
        """The train rows that every evaluation scores beside the dev rows."""
        rows = self.recipe.log.train_rows
        return {name: task.train.sample(rows, self.recipe.seed) for name, task in self.data.items()} if rows else {}


def learning_rates(recipe: Recipe, plan: Plan) -> Rates:
    """The rates of a recipe; under a budget, warm-up keeps its share of the run."""
    stretch = plan.stretch if isinstance(plan, Stretched) else 1.0
    return Rates(plan, recipe.resolved_phases(), recipe.optimizer, stretch)
