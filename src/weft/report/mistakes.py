"""Wrong predictions, grouped by kind of mistake."""

from dataclasses import dataclass

import numpy as np

from weft.report.sections import section_of
from weft.report.sections.base import MistakeCase
from weft.runs.reader import TaskRun

SHOWN = 5
"""Maximum number of rows per kind of mistake."""


@dataclass(frozen=True)
class Mistake:
    row: int
    texts: tuple[str, ...]
    true: str
    answer: str
    error: float
    """1 - p of the true label, or the absolute error of a number."""
    remark: str
    """The size of the error in words."""


@dataclass(frozen=True)
class MistakeGroup:
    """One kind of mistake."""

    title: str
    rows: int
    """Total number of such rows."""
    worst: list[Mistake]


def groups(task: TaskRun) -> list[MistakeGroup]:
    """Return the worst mistakes of each kind, then the most confident ones, then rows with probable label errors."""
    section = section_of(task.kind)
    errors = MistakeCase("Probable label errors", section.doubtful(task), section.errors(task))
    found = [_group(task, case) for case in (*section.cases(task), errors)]
    return [group for group in found if group.rows]


def _group(task: TaskRun, case: MistakeCase) -> MistakeGroup:
    section = section_of(task.kind)
    rows = np.flatnonzero(case.which)
    worst = rows[np.argsort(-case.order[rows], kind="stable")][:SHOWN]
    wrong = section.errors(task)
    return MistakeGroup(
        case.title,
        len(rows),
        [
            Mistake(
                int(row),
                task.texts[row],
                *task.true_and_answer(row),
                float(wrong[row]),
                section.remark(task, int(row)),
            )
            for row in worst
        ],
    )
