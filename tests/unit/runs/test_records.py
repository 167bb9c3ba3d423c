"""Lines of metrics.jsonl and files of a run folder, written and read back."""

import json
from pathlib import Path

import pytest

from weft.foundation.errors import UserError
from weft.foundation.records import to_json
from weft.runs.records import (
    ConflictsRecord,
    EvaluationRecord,
    LogRecord,
    RunEnvironment,
    RunResult,
    StepRecord,
    UntrainedScores,
    log_record,
    read_environment,
    read_log,
    read_result,
)

NAN = float("nan")
STEP = StepRecord(
    step=3,
    epoch=1,
    losses={"mood": 0.5},
    regularizers={"mood": 0.1},
    lr=2e-5,
    norm=1.5,
    tokens=80,
    weights={"mood": 1.0},
    rows="0a1b2c3d",
    seconds=0.25,
)
EVALUATION = EvaluationRecord(
    step=3,
    epoch=1,
    dev={"mood": {"accuracy": 0.75, "n": 8}},
    overall=0.75,
    selection=0.75,
    untrained=("rest",),
    losses={"mood": 0.4},
    train={"mood": {"accuracy": 1.0, "n": 4}},
    train_losses={"mood": 0.2},
    best=True,
    warnings=("mood: answers alike to everything",),
    seconds=0.5,
)
CONFLICTS = ConflictsRecord(
    step=3, norms={"mood": 1.0, "rest": 2.0}, cosines={"mood|rest": -0.5}, layers={"pooler": {"mood|rest": 0.1}}
)
# Other programs read these lines: neither a key nor its place may change.
LINES: list[tuple[LogRecord, str]] = [
    (
        STEP,
        '{"event": "step", "step": 3, "epoch": 1, "losses": {"mood": 0.5}, "regularizers": {"mood": 0.1}, '
        '"lr": 2e-05, "norm": 1.5, "tokens": 80, "weights": {"mood": 1.0}, "rows": "0a1b2c3d", "seconds": 0.25}',
    ),
    (
        EVALUATION,
        '{"event": "evaluation", "step": 3, "epoch": 1, "dev": {"mood": {"accuracy": 0.75, "n": 8}}, '
        '"overall": 0.75, "selection": 0.75, "untrained": ["rest"], "losses": {"mood": 0.4}, '
        '"train": {"mood": {"accuracy": 1.0, "n": 4}}, "train_losses": {"mood": 0.2}, "best": true, '
        '"warnings": ["mood: answers alike to everything"], "seconds": 0.5}',
    ),
    (
        CONFLICTS,
        '{"event": "conflicts", "step": 3, "norms": {"mood": 1.0, "rest": 2.0}, '
        '"cosines": {"mood|rest": -0.5}, "layers": {"pooler": {"mood|rest": 0.1}}}',
    ),
]


@pytest.mark.parametrize(("record", "line"), LINES, ids=lambda value: getattr(value, "event", ""))
def test_a_line_has_its_keys_in_order_and_reads_back(record: LogRecord, line: str) -> None:
    assert to_json(record) == line
    assert log_record(json.loads(line), "here") == record


def test_an_undefined_number_is_null_in_the_file_and_nan_for_followers() -> None:
    record = UntrainedScores(dev={"mood": {"pearson": NAN, "n": 8}}, overall=NAN)
    assert to_json(record) == '{"dev": {"mood": {"pearson": null, "n": 8}}, "overall": null}'
    assert record.plain()["overall"] != record.plain()["overall"]


def test_what_older_logs_lack_has_a_default(tmp_path: Path) -> None:
    step = {"event": "step", "step": 1, "epoch": 1, "losses": {"mood": 1.0}, "lr": 0.1, "norm": 1.0, "tokens": 5}
    evaluation = {"event": "evaluation", "step": 1, "epoch": 1, "dev": {"mood": {"accuracy": 0.5}}, "overall": 0.5}
    lines = [step | {"seconds": 1.0}, evaluation | {"best": True, "seconds": 2.0}, {"event": "of the future"}]
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"event": "st')
    first, second = read_log(path)
    assert isinstance(first, StepRecord)
    assert (first.regularizers, first.weights, first.rows) == ({}, {}, "")
    assert isinstance(second, EvaluationRecord)
    assert (second.selection, second.untrained, second.losses, second.train) == (None, (), None, None)
    assert second.train_score("mood", "accuracy") is None


@pytest.mark.parametrize("line", ["{", "[]", '{"event": "step", "step": "first"}'])
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text(to_json(STEP) + "\n" + line + "\n")
    with pytest.raises(UserError, match=r"metrics\.jsonl, line 2: is damaged"):
        read_log(path)


def test_result_and_environment_read_back(tmp_path: Path) -> None:
    result = RunResult(
        name="a",
        seed=1,
        steps=4,
        best_step=2,
        best_epoch=1,
        dev={"mood": {"accuracy": 0.5, "n": 8}},
        overall=0.5,
        before=UntrainedScores(dev={"mood": {"accuracy": 0.25, "n": 8}}, overall=0.25),
        seconds=1.5,
        tokens=80,
        parameters=10,
        peak_memory=1000,
        planned_steps=6,
    )
    path = tmp_path / "file.json"
    path.write_text(to_json(result))
    assert read_result(path) == result
    old = {
        key: value for key, value in result.plain().items() if key not in ("selection", "planned_steps", "untrained")
    }
    path.write_text(json.dumps(old))
    assert read_result(path).planned_steps is None
    environment = RunEnvironment(python="3.11", threads=2, packages={"torch": "2"}, processes=1)
    path.write_text(to_json(environment))
    assert read_environment(path) == environment
    path.write_text('{"name": "a"}')
    with pytest.raises(UserError, match=r"file\.json: is damaged \(seed: "):
        read_result(path)


def test_an_unknown_environment_is_empty() -> None:
    assert to_json(RunEnvironment()) == "{}"
