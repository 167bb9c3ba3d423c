"""Comparison of two models on the rows of one of them."""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from weft.data.given import Given
from weft.evaluation.gate import Gate, When, gated
from weft.foundation.errors import UserError
from weft.inference.evaluate import evaluate
from weft.inference.model import Model
from weft.kinds.metrics import choose_metrics
from weft.kinds.truth import Truth


def compare(
    old: Model,
    new: Model,
    *,
    split: str = "dev",
    data_dir: Path | None = None,
    files: Mapping[str, Given] | None = None,
    max_drop: float = 0.005,
    when: When = "possible",
) -> Gate:
    """Score both models on the old model's rows of every task that they share, or on `files`, and judge each task."""
    require_max_drop(max_drop)
    shared = [task for task in old.tasks if task in new.tasks]
    if files:
        missing = [task for task in files if task not in shared]
        if missing:
            raise UserError(f"--file {missing[0]}: the models do not share this task; they share {_names(shared)}")
        shared = list(files)
    if not shared:
        raise UserError(
            f"the models share no task: the old one has {_names(old.tasks)}, the new one {_names(new.tasks)}"
        )
    for task in shared:
        if old.labels[task] != new.labels[task]:
            raise UserError(
                f"task {task!r}: the models have different labels, so their answers cannot be compared row by row"
            )
    before = old.datasets(files or shared, split, data_dir)
    after = with_data_of(new, old).datasets(files or shared, split, data_dir)
    for task in shared:
        if not np.array_equal(before[task].targets, after[task].targets):
            raise UserError(f"task {task!r}: the two models read different rows of {before[task].file.source}")
    metrics = {task: choose_metrics(old.labels[task], old.config.tasks[task].metrics, task) for task in shared}
    old_answers, new_answers = (
        evaluate(model.engine, rows, metrics).predictions for model, rows in ((old, before), (new, after))
    )
    judged = [
        gated(
            task,
            metrics[task][0],
            (Truth.of(old.labels[task], before[task].targets), old_answers[task]),
            (Truth.of(new.labels[task], before[task].targets), new_answers[task]),
            max_drop,
            when,
        )
        for task in shared
    ]
    return Gate(max_drop, when, tuple(judged))


def require_max_drop(max_drop: float) -> None:
    if not 0 <= max_drop < math.inf:
        raise UserError(f"--max-drop {max_drop:g}: expected 0 or a positive number, such as 0.005")


def with_data_of(new: Model, old: Model) -> Model:
    """Return the new model reading the old one's files with the old one's split; masking stays its own."""
    tasks = dict(new.config.tasks)
    for name, task in old.config.tasks.items():
        if name in tasks:
            data = task.data.model_copy(update={"mask": tasks[name].data.mask})
            tasks[name] = tasks[name].model_copy(update={"data": data})
    config = new.config.model_copy(update={"tasks": tasks, "seed": old.config.seed})
    return Model(new.engine, new.tokenizer, config, new.labels, new.temperatures, new.code)


def _names(tasks: list[str]) -> str:
    return ", ".join(tasks) or "none"
