"""The rows that a reader can browse in the page: mistakes of one run, or where several disagree."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.report.mistakes import errors, is_wrong
from weft.runs.reader import Run, TaskRun

MOST = 300
"""rows of each task; a page must stay small"""
LETTERS = 400
"""of each text"""


def examples(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Rows of all tasks that every run answered for, the worst first."""
    found = []
    for name in runs[0].task_names:
        tasks = [run.tasks[name] for run in runs if name in run.tasks]
        if len(tasks) == len(runs) and comparable(tasks):
            found += _of_task(tasks)
    return found


def comparable(tasks: Sequence[TaskRun]) -> bool:
    """Whether all answered the same question for the same rows."""
    first = tasks[0]
    return all(
        task.kind == first.kind
        and task.names == first.names
        and task.texts == first.texts
        and np.array_equal(task.targets, first.targets)
        for task in tasks[1:]
    )


def _of_task(tasks: Sequence[TaskRun]) -> list[dict[str, Any]]:
    first = tasks[0]
    wrong = np.stack([is_wrong(task) for task in tasks])
    scale = first.bounds[1] - first.bounds[0] if first.is_numeric else 1.0
    far = np.stack([errors(task) for task in tasks]) / scale
    spread = far.max(axis=0) - far.min(axis=0)
    chosen = wrong[0] if len(tasks) == 1 else disagreement(tasks)
    rows = np.flatnonzero(chosen)
    order = far.max(axis=0) if len(tasks) == 1 else spread
    kept = rows[np.argsort(-order[rows], kind="stable")][:MOST]
    return [
        {
            "task": first.name,
            "row": int(row),
            "texts": [_cut(text) for text in first.texts[row]],
            "true": first.true_and_answer(row)[0],
            "answers": [task.true_and_answer(row)[1] for task in tasks],
            "wrong": [bool(w) for w in wrong[:, row]],
            "error": round(float(far[:, row].max()), 4),
            "spread": round(float(spread[row]), 4),
        }
        for row in kept
    ]


def disagreement(tasks: Sequence[TaskRun]) -> NDArray[np.bool_]:
    """[n] where not all runs give the same class, or numbers lie more than a tenth of the range apart."""
    first = tasks[0]
    if first.is_numeric:
        numbers = np.stack([task.predictions for task in tasks])
        return np.asarray(np.ptp(numbers, axis=0) > 0.1 * (first.bounds[1] - first.bounds[0]))
    chosen = np.stack([task.chosen for task in tasks])
    different = (chosen != chosen[0]).any(axis=0)
    return np.asarray(different.any(axis=1) if different.ndim == 2 else different)


def _cut(text: str) -> str:
    return text if len(text) <= LETTERS else text[: LETTERS - 1] + "…"
