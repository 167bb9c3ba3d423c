"""Records in the JSON files of a run folder: one class for each kind of line in metrics.jsonl, and for each file."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from weft.evaluation.gate import Gate
from weft.foundation.content import Content, read_json
from weft.foundation.errors import UserError
from weft.foundation.records import IF_ANY, JsonRecord, from_json

Number = int | float | None
"""An undefined number is NaN until it is written, and null in the file."""
Numbers = Mapping[str, Number]
TaskScores = Mapping[str, Mapping[str, Number]]
"""task -> metric -> value, the primary metric first; `n` is the number of rows"""


@dataclass(frozen=True, kw_only=True)
class LogRecord(JsonRecord):
    """One line of metrics.jsonl."""

    event: ClassVar[str]
    step: int

    def plain(self) -> Content:
        return {"event": self.event, **super().plain()}


@dataclass(frozen=True, kw_only=True)
class StepRecord(LogRecord):
    """One optimizer step."""

    event = "step"
    epoch: int
    losses: Numbers
    """loss of each task in the window, without the regularizer's term"""
    regularizers: Numbers = field(default_factory=dict, metadata=IF_ANY)
    """regularizer's term of each task that has one"""
    lr: float
    """learning rate"""
    norm: Number = None
    """norm of the whole gradient, before clipping"""
    tokens: int
    """tokens in the window"""
    weights: Numbers = field(default_factory=dict)
    """factor of each task's gradient from the weighting"""
    rows: str = ""
    """fingerprint of the rows of the step; identical runs have identical fingerprints"""
    seconds: float
    """training time so far, including the time before a resume"""


@dataclass(frozen=True, kw_only=True)
class ThresholdsRecord(JsonRecord):
    """Tuned thresholds of a task. Its scores elsewhere are cross-fitted: decided by thresholds from other rows."""

    at: Mapping[str, float]
    """label -> threshold, from all dev rows: saved with the model"""
    kept: tuple[str, ...] = field(default=(), metadata=IF_ANY)
    """labels with too few rows to tune, which keep 0.5"""
    default: Numbers
    """dev scores without tuning"""
    naive: Numbers
    """dev scores of these thresholds on the rows that they are tuned on: optimistic"""


@dataclass(frozen=True, kw_only=True)
class ScoresRecord(LogRecord):
    """Scores after a step."""

    epoch: int
    dev: TaskScores
    overall: Number
    selection: Number = None
    """score that selects the best epoch: the overall score without untrained tasks"""
    untrained: tuple[str, ...] = ()
    """tasks that are evaluated but get no batch"""
    auxiliary: tuple[str, ...] = field(default=(), metadata=IF_ANY)
    """tasks that do not count in the overall score"""
    losses: Numbers | None = None
    """losses on the dev rows; None in the logs of older runs"""
    train: TaskScores | None = field(default=None, metadata=IF_ANY)
    """scores on a sample of train rows; None if none were scored"""
    train_losses: Numbers | None = field(default=None, metadata=IF_ANY)
    """losses on the same train rows"""
    thresholds: Mapping[str, ThresholdsRecord] = field(default_factory=dict, metadata=IF_ANY)
    """task -> thresholds, for tasks that tune them"""
    best: bool
    """whether it is the best evaluation so far"""
    warnings: tuple[str, ...] = ()
    seconds: float

    def dev_score(self, task: str, metric: str) -> Number:
        return self.dev.get(task, {}).get(metric)

    def train_score(self, task: str, metric: str) -> Number:
        return (self.train or {}).get(task, {}).get(metric)


@dataclass(frozen=True, kw_only=True)
class EvaluationRecord(ScoresRecord):
    """Scores after a step, on all dev rows or on a sample of them; step 0 scores the untrained heads."""

    event = "evaluation"
    sample: bool = field(default=False, metadata=IF_ANY)
    """whether the dev scores are those of a sample of the dev rows"""


@dataclass(frozen=True, kw_only=True)
class FinalRecord(ScoresRecord):
    """Scores of the best model on all dev rows, after the last step of a run whose evaluations score a sample."""

    event = "final"
    selected_on: Mapping[str, int]
    """task -> dev rows of the sample that selected the best epoch"""


@dataclass(frozen=True, kw_only=True)
class ConflictsRecord(LogRecord):
    """Norms of the per-task gradients of the body in one step, and the cosine similarity of each pair."""

    event = "conflicts"
    norms: Numbers
    cosines: Numbers
    """cosine similarity of each pair of tasks, with keys such as `a|b`"""
    layers: TaskScores | None = None
    """part of the body -> pair -> cosine similarity; None unless `log.conflicts_by_layer` is set"""


@dataclass(frozen=True, kw_only=True)
class UntrainedScores(JsonRecord):
    """Scores before training."""

    dev: TaskScores = field(default_factory=dict)
    overall: Number = None


@dataclass(frozen=True, kw_only=True)
class KeptAnswers(JsonRecord):
    """sha256 of a model's answers to the dev rows of a task, before and after further tasks were added."""

    before: str
    after: str


@dataclass(frozen=True, kw_only=True)
class RunResult(JsonRecord):
    """result.json: the result of a run."""

    name: str
    seed: int
    steps: int
    best_step: int
    best_epoch: int
    dev: TaskScores
    """dev scores; like all scores here, those of the best epoch"""
    overall: Number
    selection: Number = None
    untrained: tuple[str, ...] = ()
    """tasks that were evaluated but got no batch"""
    auxiliary: tuple[str, ...] = field(default=(), metadata=IF_ANY)
    """tasks that do not count in the overall score"""
    selected_on: Mapping[str, int] = field(default_factory=dict, metadata=IF_ANY)
    """task -> dev rows of the sample that selected the best epoch; empty if all rows did"""
    thresholds: Mapping[str, ThresholdsRecord] = field(default_factory=dict, metadata=IF_ANY)
    """task -> thresholds, for tasks that tune them"""
    warnings: tuple[str, ...] = ()
    before: UntrainedScores | None = None
    """scores before training; None for a run with a budget, which is evaluated only at its end"""
    seconds: float
    cpu_seconds: float | None = None
    """CPU time of training and evaluation, over all threads of the process; None in the results of older runs"""
    tokens: int
    parameters: int
    peak_memory: int
    """peak memory in bytes"""
    planned_steps: int | None = None
    """length of the plan, more than `steps` if the run stopped early; None in the results of older runs"""
    gate: Gate | None = field(default=None, metadata=IF_ANY)
    """the old tasks before and after, if tasks were added to a trained model"""
    answers: Mapping[str, KeptAnswers] = field(default_factory=dict, metadata=IF_ANY)
    """task -> digests of its answers, if tasks were added to a trained model"""


@dataclass(frozen=True, kw_only=True)
class RunEnvironment(JsonRecord):
    """environment.json: hardware and software of a run. Equal values guarantee exact repetition. Empty if unknown."""

    code: dict[str, Any] = field(default_factory=dict, metadata=IF_ANY)
    """files of the components that the recipe names by `use`, with their digests"""
    python: str = field(default="", metadata=IF_ANY)
    system: str = field(default="", metadata=IF_ANY)
    processor: str = field(default="", metadata=IF_ANY)
    device: str = field(default="", metadata=IF_ANY)
    threads: int = field(default=0, metadata=IF_ANY)
    capability: str = field(default="", metadata=IF_ANY)
    """vector instructions that torch uses on the CPU"""
    packages: dict[str, str] = field(default_factory=dict, metadata=IF_ANY)
    """name -> version"""
    processes: int = field(default=0, metadata=IF_ANY)


_KINDS = (StepRecord, EvaluationRecord, FinalRecord, ConflictsRecord)
_LINES: dict[str, type[LogRecord]] = {kind.event: kind for kind in _KINDS}


def log_record(content: Mapping[str, Any], where: str) -> LogRecord | None:
    """Parse a line of metrics.jsonl; returns None for an unknown event."""
    kind = _LINES.get(str(content.get("event")))
    return None if kind is None else from_json(kind, content, where)


def read_log(path: Path) -> list[LogRecord]:
    """Read the records of metrics.jsonl; an incomplete last line is an interrupted write and is ignored."""
    lines = path.read_text(encoding="utf-8").split("\n")
    records = []
    for number, line in enumerate(lines[:-1], start=1):
        try:
            content = json.loads(line)
        except ValueError:
            content = None
        if not isinstance(content, dict):
            raise UserError(f"{path}, line {number}: is damaged; expected one JSON object per line")
        records.append(log_record(content, f"{path}, line {number}"))
    return [record for record in records if record is not None]


def read_result(path: Path) -> RunResult:
    return from_json(RunResult, read_json(path), str(path))


def read_environment(path: Path) -> RunEnvironment:
    return from_json(RunEnvironment, read_json(path), str(path))
