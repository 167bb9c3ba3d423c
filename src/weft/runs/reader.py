"""Reads a run folder, whatever state it is in."""

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from weft.data.labels import Kind, Targets
from weft.evaluation.metrics import DEFAULTS, METRICS
from weft.evaluation.truth import Predictions, Truth, decide
from weft.foundation.config import file_name
from weft.foundation.errors import UserError


@dataclass(frozen=True)
class TaskRun:
    """One task of a run: its dev rows and what the best model answered."""

    name: str
    kind: Kind
    reading: str
    names: tuple[str, ...]
    """class names in order; empty for a regression"""
    label_range: tuple[float, float] | None
    """a regression's, as declared or as its train rows have it; None where the run's model is gone"""
    positive: str | None
    """of two classes the one that the recipe calls positive"""
    texts: list[tuple[str, ...]]
    targets: Targets
    predictions: Predictions
    """[n, classes] probabilities, or [n] numbers in the label's own units"""
    plane: NDArray[np.float64] | None
    """[n, 2] the embeddings on paper, if the run wrote them"""
    explained: tuple[float, float] | None

    @property
    def is_numeric(self) -> bool:
        return self.kind == "regression"

    @cached_property
    def truth(self) -> Truth:
        positive = None if self.positive is None else self.names.index(self.positive)
        return Truth(self.kind, self.targets, len(self.names), self.label_range, positive)

    @property
    def one(self) -> int:
        """number of the class of two that curves and thresholds are about: the positive one, else the second"""
        return 1 if self.truth.positive is None else self.truth.positive

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """`label_range`, or what the dev rows span: a picture needs some"""
        if self.label_range is not None:
            return self.label_range
        low, high = float(self.targets.min()), float(self.targets.max())
        return (low, high) if low < high else (low, low + 1.0)

    @cached_property
    def chosen(self) -> NDArray[np.int64]:
        return decide(self.predictions, self.targets)

    def shown(self, answer: Any) -> str:
        """A target or an answer in the label's own words."""
        if self.is_numeric:
            return f"{float(answer):.2f}"
        if self.kind == "multilabel":
            return ", ".join(name for name, on in zip(self.names, answer, strict=True) if on) or "none"
        return self.names[int(answer)]

    def true_and_answer(self, row: int) -> tuple[str, str]:
        answers = self.predictions if self.is_numeric else self.chosen
        return self.shown(self.targets[row]), self.shown(answers[row])


@dataclass(frozen=True)
class Run:
    """All that a run folder tells."""

    folder: Path
    label: str
    """how the report calls it"""
    recipe: dict[str, Any]
    recipe_text: str
    environment: dict[str, Any]
    result: dict[str, Any] | None
    """None for a run that has not ended"""
    steps: list[dict[str, Any]]
    evaluations: list[dict[str, Any]]
    conflicts: list[dict[str, Any]]
    tasks: dict[str, TaskRun]
    """those with predictions; a run that was stopped before its first evaluation has none"""
    bias: dict[str, Any] | None
    """what `weft probe` found"""

    @property
    def task_names(self) -> list[str]:
        return list(self.recipe["tasks"])

    @property
    def best(self) -> dict[str, Any] | None:
        """the evaluation of the model that was kept"""
        kept = [record for record in self.evaluations if record["best"]]
        return kept[-1] if kept else None

    @property
    def untrained(self) -> list[str]:
        """Tasks that were scored but got no batch; older runs did not log them."""
        found: list[str] = (self.best or {}).get("untrained", [])
        return found

    @property
    def before(self) -> dict[str, Any] | None:
        """the evaluation of the untrained heads"""
        first = [record for record in self.evaluations if record["step"] == 0]
        return first[0] if first else None

    @property
    def seconds(self) -> float:
        if self.result is not None:
            return float(self.result["seconds"])
        records = [*self.steps, *self.evaluations]
        return max((float(record["seconds"]) for record in records), default=0.0)

    def metrics(self, task: str) -> list[str]:
        """A task's metrics, the primary one first."""
        if self.evaluations:
            return [name for name in self.evaluations[-1]["dev"][task] if name in METRICS]
        config = self.recipe["tasks"][task]
        return list(config.get("metrics") or DEFAULTS[config["kind"]])

    def primary(self) -> dict[str, str]:
        return {task: self.metrics(task)[0] for task in self.task_names}


def read_runs(folders: Sequence[Path]) -> list[Run]:
    """Every run under a name of its own: its folder's, and as much of the path as tells them apart."""
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise UserError("report: a run is named twice; give each folder once")
    depth = 1
    labels = [folder.resolve().name for folder in folders]
    while len(set(labels)) < len(labels):
        depth += 1
        labels = ["/".join(folder.resolve().parts[-depth:]) for folder in folders]
    return [read_run(folder, label) for folder, label in zip(folders, labels, strict=True)]


def read_run(folder: Path, label: str | None = None) -> Run:
    for name in ("recipe.toml", "metrics.jsonl"):
        if not (folder / name).is_file():
            raise UserError(f"{folder}: is not a run folder (it has no {name}); name a folder that `weft train` made")
    text = (folder / "recipe.toml").read_text(encoding="utf-8")
    try:
        recipe = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{folder / 'recipe.toml'}: is not TOML ({error})") from None
    records = _log(folder / "metrics.jsonl")
    by_event = {event: [r for r in records if r.get("event") == event] for event in ("step", "evaluation", "conflicts")}
    labels = (_json(folder / "model" / "weft.json") or {}).get("labels", {})
    tasks = {}
    for name, config in recipe["tasks"].items():
        file = folder / "predictions" / f"{file_name(name)}.parquet"
        if file.is_file():
            tasks[name] = _task(name, config, labels.get(name, {}), file)
    return Run(
        folder=folder,
        label=label or folder.resolve().name,
        recipe=recipe,
        recipe_text=text,
        environment=_json(folder / "environment.json") or {},
        result=_json(folder / "result.json"),
        steps=by_event["step"],
        evaluations=by_event["evaluation"],
        conflicts=by_event["conflicts"],
        tasks=tasks,
        bias=_json(folder / "bias.json"),
    )


def _json(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path}: is damaged ({error})") from None
    return dict(content)


def _log(path: Path) -> list[dict[str, Any]]:
    """The records; a last line without an end is a write that was cut off, and does not count."""
    lines = path.read_text(encoding="utf-8").split("\n")
    records = []
    for number, line in enumerate(lines[:-1], start=1):
        try:
            records.append(json.loads(line))
        except ValueError:
            raise UserError(f"{path}, line {number}: is damaged; expected one JSON value a line") from None
    return records


def _task(name: str, config: dict[str, Any], labels: dict[str, Any], file: Path) -> TaskRun:
    """`labels` is what the run's model knows of them: the one place that has the range of the train rows."""
    try:
        table = pq.read_table(file)
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{file}: is damaged ({error})") from None
    columns = {column: table.column(column) for column in table.column_names}
    names = tuple(column[2:] for column in columns if column.startswith("p_"))
    sides = [columns[side].to_pylist() for side in ("text", "text2") if side in columns]
    true = columns["label"].to_pylist()
    targets: Targets
    predictions: Predictions
    if config["kind"] == "regression":
        targets = np.array(true, dtype=np.float64)
        predictions = columns["prediction"].to_numpy()
    else:
        predictions = np.stack([columns[f"p_{label}"].to_numpy() for label in names], axis=1)
        targets = _class_numbers(true, names, multilabel=config["kind"] == "multilabel")
    plane = [columns[c].to_numpy() for c in ("pca_1", "pca_2") if c in columns]
    explained = (table.schema.metadata or {}).get(b"pca_explained")
    return TaskRun(
        name=name,
        kind=config["kind"],
        reading=config.get("reading", "single"),
        names=names,
        label_range=None if names else _range(config, labels),
        positive=config.get("positive"),
        texts=list(zip(*sides, strict=True)),
        targets=targets,
        predictions=predictions,
        plane=np.stack(plane, axis=1) if plane else None,
        explained=tuple(json.loads(explained)) if explained else None,
    )


def _range(config: dict[str, Any], labels: dict[str, Any]) -> tuple[float, float] | None:
    if labels:
        return float(labels["low"]), float(labels["high"])
    declared = config.get("range")
    return None if declared is None else (float(declared[0]), float(declared[1]))


def _class_numbers(labels: list[Any], names: tuple[str, ...], *, multilabel: bool) -> Targets:
    number = {name: i for i, name in enumerate(names)}
    if multilabel:
        on = np.zeros((len(labels), len(names)))
        for row, own in enumerate(labels):
            on[row, [number[name] for name in own]] = 1
        return on
    return np.array([number[name] for name in labels], dtype=np.int64)
