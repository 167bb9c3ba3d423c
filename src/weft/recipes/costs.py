"""What a run costs, in tokens that go through the body: known before it starts, and equal on every machine."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weft.data.dataset import Dataset
from weft.data.sources import find_sources
from weft.foundation.values import Part
from weft.recipes.assembly import TaskData, fed_rows
from weft.schedules.plan import Plan
from weft.tasks.network import Network
from weft.training.step import Step
from weft.training.trainable import TrainableConfig

SAMPLED = 20
"""windows that stand for all windows of a plan"""
SHARE = 0.05
"""maximum cost of the evaluations during training, compared with the training itself"""
LEAST_ROWS = 500
"""minimum number of dev rows per task in a sample: fewer rows rank the checkpoints of a run by chance"""


@dataclass(frozen=True)
class BodyTokens:
    """Counts the tokens that go through the body, for estimates."""

    per_row: dict[str, float]
    """mean number of tokens per train row of each task"""
    apart: bool
    """whether every task has a pass of its own, for per-task gradients"""

    @staticmethod
    def of(data: Mapping[str, TaskData], step: Step) -> "BodyTokens":
        per_row = {name: float(rows.token_counts().mean()) for name, rows in fed_rows(data).items()}
        return BodyTokens(per_row, step.methods.keep_apart)

    def of_parts(self, parts: Sequence[Part]) -> float:
        """Expected tokens of some parts; a row that several tasks of a source ask about counts once."""
        together: dict[tuple[int, str], list[Part]] = {}
        for part in parts:
            together.setdefault((part.micro, part.task if self.apart else part.source), []).append(part)
        return sum(
            len(np.unique(np.concatenate([part.places for part in own]))) * self.per_row[own[0].task]
            for own in together.values()
        )

    def of_training(
        self, plan: Plan, passes: Sequence[int], share: Callable[[int, str], float] = lambda _phase, _task: 1.0
    ) -> float:
        """Tokens of a forward pass that costs as much as all steps; `passes` are those of each phase.

        `share` is the fraction of the layers that the rows of a task go through in a phase. Defaults to all.
        """
        steps = np.linspace(0, plan.steps - 1, min(SAMPLED, plan.steps)).astype(int).tolist()
        costs = []
        for step in steps:
            phase, parts = plan.phase(step), plan.window(step).parts
            shares = {part.task: share(phase, part.task) for part in parts}
            groups = [[part for part in parts if shares[part.task] == own] for own in set(shares.values())]
            costs.append(passes[phase] * sum(shares[own[0].task] * self.of_parts(own) for own in groups))
        return float(np.mean(costs)) * plan.steps


def passes_of(network: Network, mode: TrainableConfig) -> int:
    """Cost of a training step, in forward passes.

    A token is multiplied by the weights of the layers in the forward pass, for the gradient of the states if layers or
    adapters train, and for the gradient of the weights if the layers train.
    """
    trained = [name for name, _ in network.named_parameters() if mode.trains(name)]
    reaches_layers = any(name.startswith(("body.", "adapter")) for name in trained)
    return 1 + reaches_layers + any(name.startswith("body.") for name in trained)


def count_tokens(datasets: Mapping[str, Dataset]) -> int:
    """Count the tokens of data sets; a row that several tasks ask about counts once."""
    return sum(int(source.token_counts().sum()) for source in find_sources(datasets))


def sample_rows(dev: Mapping[str, Dataset], count: int) -> dict[str, Dataset]:
    """Return at most `count` dev rows of each task, in the order of the tasks."""
    sampled = {name: own for source in find_sources(dev) for name, own in source.sample(count).items()}
    return {name: sampled[name] for name in dev}


def affordable_rows(dev: Mapping[str, Dataset], tokens: float) -> int:
    """Return the rows per task of the largest sample within this many tokens, and at least `LEAST_ROWS`.

    The number is rounded down to two digits, so that small changes of a recipe keep the sample.
    """
    most = max(map(len, dev.values()))
    low, high = min(LEAST_ROWS, most), most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count_tokens(sample_rows(dev, middle)) <= tokens else (low, middle)
    if low in (LEAST_ROWS, most):
        return low
    unit = int(10 ** (len(str(low)) - 2))
    return max(LEAST_ROWS, low // unit * unit)
