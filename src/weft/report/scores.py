"""The table of scores with intervals and baselines."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from weft.evaluation.bootstrap import Interval, Resampled, interval, resampled, resampled_overall
from weft.kinds.metrics import METRICS, counted, explain, overall, title
from weft.runs.reader import Run


@dataclass(frozen=True)
class Score:
    """One metric of one task. None: not measured by the run. NaN: undefined."""

    task: str
    metric: str
    value: float | None
    interval: Interval | None
    before: float | None
    train: float | None
    guess: float | None
    constant: float | None
    rows: int | None
    is_primary: bool

    @property
    def title(self) -> str:
        return title(self.metric)

    @property
    def lower_is_better(self) -> bool:
        return METRICS[self.metric].lower_is_better


class Scores:
    """All scores of a run, computed from its predictions, or read from its log if it has none."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.primary = run.primary()
        self.counted = counted(self.primary, run.auxiliary)
        """the primary metrics that count in the overall score"""

    @cached_property
    def resampled(self) -> dict[str, dict[str, Resampled]]:
        """Task -> metric -> its value on every bootstrap resample of the dev rows."""
        return {
            name: resampled(self.run.metrics(name), task.truth, task.predictions, name)
            for name, task in self.run.tasks.items()
        }

    @cached_property
    def table(self) -> list[Score]:
        return [self._score(task, metric) for task in self.run.task_names for metric in self.run.metrics(task)]

    @cached_property
    def explained(self) -> list[str]:
        """How the overall score is computed, and what the metrics average over."""
        positive = {name: task.positive for name, task in self.run.tasks.items() if task.positive is not None}
        measured = {task: self.run.metrics(task) for task in self.run.task_names}
        return explain(measured, positive, self.run.auxiliary)

    @cached_property
    def primaries(self) -> list[Score]:
        return [score for score in self.table if score.is_primary]

    @cached_property
    def overall(self) -> Score:
        run = self.run
        values = {score.task: {score.metric: score.value} for score in self.primaries}
        guesses = {score.task: {score.metric: score.guess} for score in self.primaries}
        whole = len(run.tasks) == len(run.task_names)
        spread = interval(self.resampled_overall) if whole else None
        return Score(
            task="overall",
            metric=next(iter(self.primary.values())),
            value=self._overall(values) if run.tasks else (run.best.overall if run.best else None),
            interval=spread,
            before=run.before.overall if run.before else None,
            train=self._overall((run.best.train if run.best else None) or {}),
            guess=self._overall(guesses),
            constant=None,
            rows=None,
            is_primary=True,
        )

    @cached_property
    def resampled_overall(self) -> Resampled:
        return resampled_overall({t: self.resampled[t][m] for t, m in self.counted.items()}, self.counted)

    def _overall(self, scores: Mapping[str, Mapping[str, float | None]]) -> float | None:
        known = {
            task: {metric: value}
            for task, metric in self.counted.items()
            if (value := scores.get(task, {}).get(metric)) is not None
        }
        return overall(known, self.counted) if len(known) == len(self.counted) else None

    def _score(self, name: str, metric: str) -> Score:
        run = self.run
        task = run.tasks.get(name)
        common: dict[str, Any] = {
            "task": name,
            "metric": metric,
            "before": run.before.dev_score(name, metric) if run.before else None,
            "train": run.best.train_score(name, metric) if run.best else None,
            "is_primary": metric == self.primary[name],
        }
        if task is None:
            value = run.best.dev_score(name, metric) if run.best else None
            return Score(value=value, interval=None, guess=None, constant=None, rows=None, **common)
        return Score(
            value=METRICS[metric].compute(task.truth, task.predictions),
            interval=interval(self.resampled[name][metric]),
            guess=METRICS[metric].random(task.truth),
            constant=METRICS[metric].majority(task.truth),
            rows=len(task.targets),
            **common,
        )
