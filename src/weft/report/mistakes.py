"""Which rows a model got wrong, sorted by how."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.runs.reader import TaskRun

SHOWN = 5
"""rows of each kind"""
CONFUSIONS = 3
OUTLIER = 3.0
"""robust standard deviations from the usual error at which a number's label is doubtful"""


@dataclass(frozen=True)
class Mistake:
    row: int
    texts: tuple[str, ...]
    true: str
    answer: str
    error: float
    """1 - p of the truth, or how far off a number is"""
    confidence: float | None
    """probability of the answer, where there is one answer"""


@dataclass(frozen=True)
class MistakeGroup:
    """One kind of mistake."""

    title: str
    rows: int
    """how many there are in all"""
    worst: list[Mistake]


def errors(task: TaskRun) -> NDArray[np.float64]:
    """[n] how wrong each row is: 1 - p of the truth, or how far off a number is."""
    if task.is_numeric:
        return np.abs(task.predictions - task.targets)
    if task.kind == "multilabel":
        worst: NDArray[np.float64] = np.abs(task.predictions - task.targets).max(axis=1)
        return worst
    found: NDArray[np.float64] = 1 - task.predictions[np.arange(len(task.targets)), task.targets]
    return found


def is_wrong(task: TaskRun) -> NDArray[np.bool_]:
    """[n] whether a row counts as a mistake; a number does when it is off by more than a fifth of its range."""
    if task.is_numeric:
        low, high = task.bounds
        return np.asarray(errors(task) > 0.2 * (high - low))
    different = task.chosen != task.targets
    return np.asarray(different.any(axis=1) if different.ndim == 2 else different)


def groups(task: TaskRun) -> list[MistakeGroup]:
    """The worst mistakes of each kind, then the most confident ones, then rows whose label may be wrong."""
    wrong = errors(task)
    found = [_group(task, title, which, wrong) for title, which in _kinds(task)]
    if not task.is_numeric:
        confidence = task.predictions.max(axis=1)
        if task.kind == "multilabel":
            confidence = np.where(task.chosen != task.targets, np.abs(task.predictions - 0.5), 0).max(axis=1)
        found.append(_group(task, "Most confident mistakes", is_wrong(task), confidence))
    found.append(_group(task, "Probable label errors", doubtful(task), wrong))
    return [group for group in found if group.rows]


def _group(task: TaskRun, title: str, which: NDArray[np.bool_], order: NDArray[np.float64]) -> MistakeGroup:
    rows = np.flatnonzero(which)
    worst = rows[np.argsort(-order[rows], kind="stable")][:SHOWN]
    wrong = errors(task)
    sure = None if task.is_numeric or task.kind == "multilabel" else task.predictions.max(axis=1)
    return MistakeGroup(
        title,
        len(rows),
        [
            Mistake(
                int(row),
                task.texts[row],
                *task.true_and_answer(row),
                float(wrong[row]),
                None if sure is None else float(sure[row]),
            )
            for row in worst
        ],
    )


def _kinds(task: TaskRun) -> Sequence[tuple[str, NDArray[np.bool_]]]:
    y, chosen = task.targets, task.chosen if not task.is_numeric else task.targets
    if task.is_numeric:
        return _numbers(task)
    if task.kind == "multilabel":
        return [
            ("Labels missed", ((y > 0.5) & (chosen == 0)).any(axis=1)),
            ("Labels too many", ((y < 0.5) & (chosen == 1)).any(axis=1)),
        ]
    if len(task.names) == 2:
        no, yes = task.names
        return [
            (f"False positives: “{no}” taken for “{yes}”", (y == 0) & (chosen == 1)),
            (f"False negatives: “{yes}” taken for “{no}”", (y == 1) & (chosen == 0)),
        ]
    if task.kind == "ordinal":
        gap = chosen - y
        return [
            ("One class too high", gap == 1),
            ("One class too low", gap == -1),
            ("Off by two classes or more", np.abs(gap) >= 2),
        ]
    pairs = [(i, j) for i in range(len(task.names)) for j in range(len(task.names)) if i != j]
    common = sorted(pairs, key=lambda pair: -int(((y == pair[0]) & (chosen == pair[1])).sum()))[:CONFUSIONS]
    return [(f"“{task.names[i]}” taken for “{task.names[j]}”", (y == i) & (chosen == j)) for i, j in common]


def _numbers(task: TaskRun) -> Sequence[tuple[str, NDArray[np.bool_]]]:
    """Off by one to two fifths of the range, and by more: 1 to 2 and more than 2 on a scale of 0 to 5."""
    fifth = 0.2 * (task.bounds[1] - task.bounds[0])
    gap = errors(task)
    return [
        (f"Off by {fifth:g} to {2 * fifth:g}", (gap > fifth) & (gap <= 2 * fifth)),
        (f"Off by more than {2 * fifth:g}", gap > 2 * fifth),
    ]


def doubtful(task: TaskRun) -> NDArray[np.bool_]:
    """[n] rows whose label the model contradicts more firmly than it usually supports one.

    Classes: the wrong answer is as probable as on the surest quarter of the rows where that answer is right, after
    confident learning (Northcutt et al., 2021). Numbers: an error far outside the usual spread of errors.
    """
    if task.is_numeric:
        gaps = task.predictions - task.targets
        centre = np.median(gaps)
        spread = 1.4826 * np.median(np.abs(gaps - centre))
        return np.asarray(np.abs(gaps - centre) > OUTLIER * spread) if spread > 0 else np.zeros(len(gaps), dtype=bool)
    p = task.predictions
    if task.kind == "multilabel":
        sure = np.maximum(p, 1 - p)
        right = task.chosen == task.targets
        usual = [_sure(sure[right[:, i], i]) for i in range(p.shape[1])]
        return np.asarray((~right & (sure >= usual)).any(axis=1))
    right = task.chosen == task.targets
    by_class = np.array([_sure(p[right & (task.targets == i), i]) for i in range(p.shape[1])])
    return np.asarray(~right & (p.max(axis=1) >= by_class[task.chosen]))


def _sure(values: NDArray[np.float64]) -> float:
    """Where the surest quarter begins, and never below a half: a model that is never sure says nothing about labels."""
    return max(float(np.quantile(values, 0.75)), 0.5) if len(values) else float("inf")
