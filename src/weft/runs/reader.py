"""Reads a run folder in any state, finished or not."""

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from weft.evaluation.table import HEADER, score_rows, score_text
from weft.evaluation.thresholds import DEFAULT, TunedThresholds, tune
from weft.foundation.errors import UserError
from weft.foundation.notebook import html_table
from weft.kinds import KINDS
from weft.kinds.base import Kind
from weft.kinds.metrics import METRICS
from weft.kinds.truth import Predictions, Targets, Thresholds, Truth
from weft.runs.folder import RunPaths
from weft.runs.records import (
    ConflictsRecord,
    EvaluationRecord,
    FinalRecord,
    RunEnvironment,
    RunResult,
    ScoresRecord,
    StepRecord,
    read_environment,
    read_log,
    read_result,
)


@dataclass(frozen=True)
class TaskRun:
    """One task of a run: its dev rows and the predictions of the best model."""

    name: str
    kind: Kind
    reading: str
    names: tuple[str, ...]
    """class names in order; empty for a regression"""
    label_range: tuple[float, float] | None
    """label range of a regression, as declared or as found in its train rows; None if the run has no model"""
    positive: str | None
    """the positive one of two classes, if the recipe names one"""
    texts: list[tuple[str, ...]]
    targets: Targets
    predictions: Predictions
    """[n, classes] probabilities, or [n] numbers in the units of the labels"""
    plane: NDArray[np.float64] | None
    """[n, 2] PCA of the embeddings, if the run saved it"""
    explained: tuple[float, float] | None
    """fraction of the variance that each of the two axes explains"""
    metrics: tuple[str, ...]
    """names of the metrics, the primary one first"""
    tunes_thresholds: bool

    @cached_property
    def truth(self) -> Truth:
        """what the predictions are scored with: the decisions of a task with tuned thresholds are cross-fitted"""
        cuts = None if self.tuned is None else self.tuned.cross_fitted
        return replace(self._plain_truth, thresholds=cuts)

    @cached_property
    def _plain_truth(self) -> Truth:
        positive = None if self.positive is None else self.names.index(self.positive)
        return Truth(self.kind, self.targets, len(self.names), self.label_range, positive, names=self.names)

    @cached_property
    def tuned(self) -> TunedThresholds | None:
        """the thresholds, tuned on these rows as in training; None if they are not tuned"""
        return tune(self._plain_truth, self.metrics, self.predictions) if self.tunes_thresholds else None

    @cached_property
    def thresholds(self) -> Thresholds:
        """[decisions] thresholds of the binary decisions, as saved with the model; empty if there are none"""
        if self.tuned is not None:
            return self.tuned.final
        return np.full(len(self.kind.decisions(self.names)), DEFAULT)

    @property
    def one(self) -> int:
        """number of the class of two that curves and thresholds are about: the positive one, else the second"""
        return 1 if self.positive is None else self.names.index(self.positive)

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """`label_range`, or else the range of the dev labels, for the axes of plots"""
        if self.label_range is not None:
            return self.label_range
        low, high = float(self.targets.min()), float(self.targets.max())
        return (low, high) if low < high else (low, low + 1.0)

    @cached_property
    def chosen(self) -> Targets:
        """the predicted label of each row, in the form of `targets`"""
        return self.truth.decide(self.predictions)

    def true_and_answer(self, row: int) -> tuple[str, str]:
        """True label and predicted label of a row, as text."""
        return self.kind.shown(self.names, self.targets[row]), self.kind.shown(self.names, self.chosen[row])


@dataclass(frozen=True, repr=False)
class Run:
    """The content of a run folder; printed, it is a table of its best scores."""

    folder: Path
    label: str
    """name of the run in the report"""
    recipe: dict[str, Any]
    recipe_text: str
    environment: RunEnvironment
    result: RunResult | None
    """None for a run that has not ended"""
    steps: list[StepRecord]
    evaluations: list[EvaluationRecord]
    """evaluations during training, which may score a sample of the dev rows"""
    final: FinalRecord | None
    """evaluation of the best model on all dev rows; None if all evaluations scored all rows"""
    conflicts: list[ConflictsRecord]
    tasks: dict[str, TaskRun]
    """tasks with predictions; empty for a run that stopped before its first evaluation"""
    bias: dict[str, Any] | None
    """result of `weft probe`"""

    @property
    def task_names(self) -> list[str]:
        return list(self.recipe["tasks"])

    @property
    def best(self) -> ScoresRecord | None:
        """scores of the best checkpoint: the final ones, on all dev rows, as soon as there are any"""
        return self.final or self.selected

    @property
    def selected(self) -> EvaluationRecord | None:
        """evaluation during training that selected the best checkpoint"""
        kept = [record for record in self.evaluations if record.best]
        return kept[-1] if kept else None

    @property
    def untrained(self) -> tuple[str, ...]:
        """Tasks that were evaluated but got no batch; older runs did not log them."""
        return () if self.best is None else self.best.untrained

    @property
    def auxiliary(self) -> tuple[str, ...]:
        """Tasks that do not count in the overall score."""
        return () if self.best is None else self.best.auxiliary

    @property
    def before(self) -> EvaluationRecord | None:
        """evaluation of the untrained heads"""
        first = [record for record in self.evaluations if record.step == 0]
        return first[0] if first else None

    @property
    def seconds(self) -> float:
        if self.result is not None:
            return self.result.seconds
        records: list[StepRecord | EvaluationRecord] = [*self.steps, *self.evaluations]
        return max((record.seconds for record in records), default=0.0)

    @property
    def steps_done(self) -> int:
        return self.steps[-1].step if self.steps else 0

    def __repr__(self) -> str:
        best = self.best
        return self._title if best is None else f"{self._title}\n{score_text(best.dev, best.overall)}"

    def _repr_html_(self) -> str:
        best = self.best
        return html_table(self._title, HEADER, [] if best is None else score_rows(best.dev, best.overall))

    @property
    def _title(self) -> str:
        state = "finished" if self.result is not None else "not finished"
        best = f", best after step {self.best.step:,}" if self.best is not None else ""
        return f"Run {self.label}: {state}, {self.steps_done:,} steps{best}"

    def metrics(self, task: str) -> list[str]:
        """A task's metrics, the primary one first."""
        if self.evaluations:
            return [name for name in self.evaluations[-1].dev[task] if name in METRICS]
        config = self.recipe["tasks"][task]
        return list(config.get("metrics") or KINDS[config["kind"]].default_metrics)

    def primary(self) -> dict[str, str]:
        return {task: self.metrics(task)[0] for task in self.task_names}


def read_runs(folders: Sequence[Path]) -> list[Run]:
    """Read several runs. Each gets a unique label: its folder's name, with as much of the path as needed."""
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise UserError("report: a run is given twice; give each folder once")
    depth = 1
    labels = [folder.resolve().name for folder in folders]
    while len(set(labels)) < len(labels):
        depth += 1
        labels = ["/".join(folder.resolve().parts[-depth:]) for folder in folders]
    return [read_run(folder, label) for folder, label in zip(folders, labels, strict=True)]


def open_run(folder: str | Path) -> Run:
    """A run folder, to look at in Python: recipe, evaluations, dev predictions; it may still be training."""
    return read_run(Path(folder))


def read_run(folder: Path, label: str | None = None) -> Run:
    """Read a run folder. `label` defaults to the folder's name."""
    paths = RunPaths(folder)
    for file in (paths.recipe, paths.metrics):
        if not file.is_file():
            raise UserError(
                f"{folder}: is not a run folder (it has no {file.name}); expected a folder that `weft train` wrote"
            )
    text = paths.recipe.read_text(encoding="utf-8")
    try:
        recipe = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{paths.recipe}: is not TOML ({error})") from None
    records = read_log(paths.metrics)
    labels = (_json(paths.model / "weft.json") or {}).get("labels", {})
    tasks = {}
    for name, config in recipe["tasks"].items():
        file = paths.answers(name)
        if file.is_file():
            tasks[name] = _task(name, config, labels.get(name, {}), file)
    return Run(
        folder=folder,
        label=label or folder.resolve().name,
        recipe=recipe,
        recipe_text=text,
        environment=read_environment(paths.environment) if paths.environment.is_file() else RunEnvironment(),
        result=read_result(paths.result) if paths.has_ended else None,
        steps=[record for record in records if isinstance(record, StepRecord)],
        evaluations=[record for record in records if isinstance(record, EvaluationRecord)],
        final=next((record for record in records if isinstance(record, FinalRecord)), None),
        conflicts=[record for record in records if isinstance(record, ConflictsRecord)],
        tasks=tasks,
        bias=_json(paths.bias),
    )


def _json(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path}: is damaged ({error})") from None
    return dict(content)


def _task(name: str, config: dict[str, Any], labels: dict[str, Any], file: Path) -> TaskRun:
    """Read the predictions of a task. `labels` come from the model, which has the label range of the train rows."""
    try:
        table = pq.read_table(file)
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{file}: is damaged ({error})") from None
    columns = {column: table.column(column) for column in table.column_names}
    metadata = table.schema.metadata or {}
    if b"names" in metadata:
        names = tuple(json.loads(metadata[b"names"]))
    else:  # older runs
        names = tuple(column[2:] for column in columns if column.startswith("p_"))
    sides = [columns[side].to_pylist() for side in ("text", "text2") if side in columns]
    kind = KINDS[config["kind"]]
    plane = [columns[c].to_numpy() for c in ("pca_1", "pca_2") if c in columns]
    explained = metadata.get(b"pca_explained")
    return TaskRun(
        name=name,
        kind=kind,
        reading=config.get("reading", "single"),
        names=names,
        label_range=None if names else _range(config, labels),
        positive=config.get("positive"),
        texts=list(zip(*sides, strict=True)),
        targets=kind.read_cells(columns["label"].to_pylist(), names),
        predictions=kind.read_predictions(columns, names),
        plane=np.stack(plane, axis=1) if plane else None,
        explained=tuple(json.loads(explained)) if explained else None,
        metrics=tuple(config.get("metrics") or kind.default_metrics),
        tunes_thresholds=config.get("thresholds") == "tuned",
    )


def _range(config: dict[str, Any], labels: dict[str, Any]) -> tuple[float, float] | None:
    if labels:
        return float(labels["low"]), float(labels["high"])
    declared = config.get("range")
    return None if declared is None else (float(declared[0]), float(declared[1]))
