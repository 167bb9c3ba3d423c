"""Rows for the example browser: mistakes of one run, or rows on which several runs disagree."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.report.sections import section_of
from weft.runs.reader import Run, TaskRun

MOST = 300
"""Maximum number of rows per task, to limit the size of the page."""
LETTERS = 400
"""Maximum number of characters per text."""


def examples(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return rows of all tasks that every run has predictions for, worst first."""
    found = []
    for name in runs[0].task_names:
        tasks = [run.tasks[name] for run in runs if name in run.tasks]
        if len(tasks) == len(runs) and comparable(tasks):
            found += _of_task(tasks)
    return found


def comparable(tasks: Sequence[TaskRun]) -> bool:
    """Return whether all have the same kind, labels and dev rows."""
    first = tasks[0]
    return all(
        task.kind == first.kind
        and task.names == first.names
        and task.texts == first.texts
        and np.array_equal(first.kind.flat(task.targets), first.kind.flat(first.targets))
        for task in tasks[1:]
    )


def _of_task(tasks: Sequence[TaskRun]) -> list[dict[str, Any]]:
    first = tasks[0]
    section = section_of(first.kind)
    wrong = np.stack([section.is_wrong(task) for task in tasks])
    far = np.stack([section.errors(task) for task in tasks]) / section.error_unit(first)
    spread = far.max(axis=0) - far.min(axis=0)
    chosen = wrong[0] if len(tasks) == 1 else section.disagreement(tasks)
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


def _cut(text: str) -> str:
    return text if len(text) <= LETTERS else text[: LETTERS - 1] + "…"
