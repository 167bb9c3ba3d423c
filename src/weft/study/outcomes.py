"""Results of the runs of a study, per dev row."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weft.evaluation.together import resampled_together
from weft.foundation.errors import RunError
from weft.kinds.metrics import METRICS
from weft.kinds.truth import Predictions, Truth
from weft.report.learning import conflicts
from weft.runs.reader import read_run
from weft.runs.records import TaskScores

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class TaskOutcome:
    """Predictions of one run for the dev rows of one task."""

    truth: Truth
    predictions: Predictions
    metrics: tuple[str, ...]
    """Primary metric first."""
    texts: list[tuple[str, ...]] | None = None


@dataclass(frozen=True)
class RunOutcome:
    """Predictions, train scores, cost and gradient conflicts of one finished run."""

    tasks: dict[str, TaskOutcome]
    train: TaskScores
    """Scores on train rows."""
    cost: dict[str, float]
    """Keys: seconds, cpu_seconds (if the run recorded it), tokens, and peak_memory in bytes."""
    conflicts: dict[str, tuple[float, float]]
    """Pair of tasks -> mean cosine similarity of their gradients, share of logged steps on which it is below 0."""


@dataclass(frozen=True)
class Measured:
    """One metric of one arm, oriented so that larger is better: on the dev rows and on each bootstrap resample."""

    seeds: tuple[int, ...]
    values: Numbers
    """[seeds]; NaN where the metric is undefined."""
    resampled: Numbers
    """[rounds, seeds]"""

    def minus(self, other: "Measured") -> "Measured":
        """Return the difference of each seed that both have."""
        seeds = tuple(seed for seed in self.seeds if seed in other.seeds)
        one, two = ([own.seeds.index(seed) for seed in seeds] for own in (self, other))
        return Measured(seeds, self.values[one] - other.values[two], self.resampled[:, one] - other.resampled[:, two])


class Outcomes:
    """All finished runs, by arm and seed."""

    def __init__(self, runs: Mapping[tuple[str, int], RunOutcome]) -> None:
        self.runs = dict(runs)
        self._measured: dict[tuple[str, str], Measured] = {}
        self._check_rows()

    def seeds(self, arm: str) -> tuple[int, ...]:
        return tuple(seed for name, seed in self.runs if name == arm)

    def tasks(self, arm: str) -> dict[str, TaskOutcome]:
        """Return the tasks of the arm's first run; rows and metrics are the same in all runs."""
        seeds = self.seeds(arm)
        return self.runs[arm, seeds[0]].tasks if seeds else {}

    def measured(self, arm: str, metric: str) -> Measured:
        """Return `TASK.METRIC` or `overall` of an arm."""
        if (arm, metric) not in self._measured:
            self._measured[arm, metric] = self._overall(arm) if metric == "overall" else self._task(arm, metric)
        return self._measured[arm, metric]

    def gap(self, arm: str, metric: str) -> Measured:
        """Return the dev score minus the train score: larger means less overfitting.

        Train rows are sampled per seed, so their sampling variance is part of the variance between seeds.
        """
        dev = self.measured(arm, metric)
        task, name = metric.split(".", 1)
        sign = -1.0 if METRICS[name].lower_is_better else 1.0
        train = np.array([_number(self.runs[arm, seed].train.get(task, {}).get(name)) for seed in dev.seeds])
        return Measured(dev.seeds, dev.values - sign * train, dev.resampled - sign * train)

    def cost(self, arm: str, kind: str) -> Numbers:
        """Return the cost of each run: [seeds]; NaN where a run did not record it."""
        return np.array([self.runs[arm, seed].cost.get(kind, float("nan")) for seed in self.seeds(arm)])

    def _task(self, arm: str, metric: str) -> Measured:
        task, name = metric.split(".", 1)
        seeds = self.seeds(arm)
        own = [self.runs[arm, seed].tasks[task] for seed in seeds]
        sign = -1.0 if METRICS[name].lower_is_better else 1.0
        values = np.array([METRICS[name].compute(run.truth, run.predictions) for run in own])
        resampled = resampled_together(name, [(run.truth, run.predictions) for run in own], task)
        return Measured(seeds, sign * values, sign * resampled)

    def _overall(self, arm: str) -> Measured:
        """Average the tasks' primary metrics; a correlation r counts as (1 + r) / 2."""
        primary = {task: own.metrics[0] for task, own in self.tasks(arm).items()}
        parts = [self.measured(arm, f"{task}.{name}") for task, name in primary.items()]
        halves = [METRICS[name].is_correlation for name in primary.values()]

        def mean(numbers: list[Numbers]) -> Numbers:
            brought = [(1 + own) / 2 if half else own for own, half in zip(numbers, halves, strict=True)]
            total: Numbers = np.mean(brought, axis=0)
            return total

        return Measured(self.seeds(arm), mean([p.values for p in parts]), mean([p.resampled for p in parts]))

    def _check_rows(self) -> None:
        """Require the same dev rows in every run: paired differences need them."""
        first: dict[str, tuple[str, TaskOutcome]] = {}
        for (arm, seed), run in self.runs.items():
            for task, own in run.tasks.items():
                name, other = first.setdefault(task, (f"{arm}-{seed}", own))
                same = _same(own.truth, other.truth)
                if not same or not (own.texts is None or other.texts is None or own.texts == other.texts):
                    raise RunError(f"{task}: the dev rows of {arm}-{seed} differ from those of {name}")


def _same(one: Truth, other: Truth) -> bool:
    return np.array_equal(one.kind.flat(one.targets), other.kind.flat(other.targets))


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def read_outcome(folder: Path, metrics: Mapping[str, tuple[str, ...]]) -> RunOutcome:
    """Read the results of a run at the last step of its budget."""
    run = read_run(folder)
    result, last = run.result, run.evaluations[-1] if run.evaluations else None
    if result is None or last is None or last.step != result.steps or result.best_step != result.steps:
        raise RunError(f"{folder}: was not evaluated at the end of its budget; delete it to train the run again")
    tasks = {
        name: TaskOutcome(task.truth, task.predictions, metrics[name], task.texts)
        for name, task in run.tasks.items()
        if name in metrics
    }
    cost = {"seconds": result.seconds, "tokens": float(result.tokens), "peak_memory": float(result.peak_memory)}
    if result.cpu_seconds is not None:
        cost["cpu_seconds"] = result.cpu_seconds
    pairs = {"|".join(pair.tasks): (pair.mean, pair.below_zero) for pair in conflicts(run)}
    return RunOutcome(tasks, last.train or {}, cost, pairs)
