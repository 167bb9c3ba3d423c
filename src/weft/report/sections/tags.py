"""Section for tasks with a tag for each word."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from weft.kinds.spans import WordSpan, scheme_of, spans_of
from weft.kinds.tags import END, SCORE, START
from weft.report.chart import Chart
from weft.report.classes import ClassRow
from weft.report.sections.base import MistakeCase, Section, Which
from weft.report.sections.probability import surest
from weft.report.tables import plain_table
from weft.report.task_charts import Labelled
from weft.runs.reader import TaskRun

SHOWN = 12
"""Maximum number of texts with highlighted spans."""
COLOURS = 6
"""Number of highlight colours; further types use them again."""


@dataclass(frozen=True)
class TextPiece:
    """Characters of a text: a span with its type, or what is between spans."""

    text: str
    type: str | None = None
    colour: int = 0


@dataclass(frozen=True)
class Highlighted:
    """A text with its true and its predicted spans."""

    row: int
    true: list[TextPiece]
    predicted: list[TextPiece]
    is_wrong: bool


@dataclass(frozen=True)
class TagFindings:
    types: list[ClassRow]
    """Precision, recall, F1 and number of true spans of each type."""
    texts: list[Highlighted]
    """The texts with the most wrong words; correct ones if there are few."""
    unseen: int
    """Number of words that the model did not see, which are predicted as outside."""


class TagsSection(Section):
    template = "tags.html"

    def find(self, task: TaskRun) -> TagFindings:
        order = np.argsort(-self.errors(task), kind="stable")[:SHOWN]
        texts = [self._highlighted(task, int(row)) for row in order]
        unseen = sum(int((row[:, SCORE] == 0).sum()) for row in task.predictions)
        return TagFindings(type_rows(task), texts, unseen)

    def _highlighted(self, task: TaskRun, row: int) -> Highlighted:
        true, chosen = (spans_of(tags[row], task.names) for tags in (task.targets, task.chosen))
        return Highlighted(row, pieces(task, row, true), pieces(task, row, chosen), true != chosen)

    def charts(self, task: TaskRun, found: TagFindings) -> list[Chart]:  # noqa: ARG002
        return []

    def labelled(self, task: TaskRun) -> list[Labelled]:  # noqa: ARG002
        return []

    def text(self, task: TaskRun) -> Table:
        table = plain_table("type", right=("precision", "recall", "F1", "spans"))
        for row in type_rows(task):
            table.add_row(row.name, *(f"{v:.3f}" for v in (row.precision, row.recall, row.f1)), f"{row.rows:,}")
        return table

    def errors(self, task: TaskRun) -> NDArray[np.float64]:
        """Return the share of wrong words of each row."""
        pairs = zip(task.targets, task.chosen, strict=True)
        return np.array([float((true != chosen).mean()) if len(true) else 0.0 for true, chosen in pairs])

    def is_wrong(self, task: TaskRun) -> Which:
        return np.asarray(self.errors(task) > 0)

    def cases(self, task: TaskRun) -> list[MistakeCase]:
        spans = [(set(spans_of(a, task.names)), set(spans_of(b, task.names))) for a, b in _pairs(task)]
        wrong = self.errors(task)
        return [
            MistakeCase("Spans missed or found with other words", _where(true - own for true, own in spans), wrong),
            MistakeCase("Spurious spans", _where(own - true for true, own in spans), wrong),
        ]

    def doubtful(self, task: TaskRun) -> Which:
        """Find probable label errors: rows with a word whose tag the model contradicts confidently."""
        scores = [row[:, SCORE] for row in task.predictions]
        wrong = [true != chosen for true, chosen in _pairs(task)]
        right = np.concatenate([np.empty(0), *(own[~bad] for own, bad in zip(scores, wrong, strict=True))])
        usual = surest(right)
        return np.array([bool((own[bad] >= usual).any()) for own, bad in zip(scores, wrong, strict=True)])

    def remark(self, task: TaskRun, row: int) -> str:
        wrong = int((task.targets[row] != task.chosen[row]).sum())
        return f"{wrong} of {len(task.targets[row])} words wrong"

    def disagreement(self, tasks: Sequence[TaskRun]) -> Which:
        first, *others = ([row.tolist() for row in task.chosen] for task in tasks)
        return np.array([any(other[i] != own for other in others) for i, own in enumerate(first)])


def _pairs(task: TaskRun) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return the true and the predicted tags of each row."""
    return list(zip(task.targets, task.chosen, strict=True))


def _where(sets: Iterable[set[WordSpan]]) -> Which:
    return np.array([bool(found) for found in sets], dtype=bool)


def type_rows(task: TaskRun) -> list[ClassRow]:
    """Return precision, recall and F1 of each type of span."""
    rows = []
    both = [(set(spans_of(a, task.names)), set(spans_of(b, task.names))) for a, b in _pairs(task)]
    for name in scheme_of(task.names).found:
        true, own, right = (
            sum(sum(span.type == name for span in found) for found in sets)
            for sets in ([a for a, _ in both], [b for _, b in both], [a & b for a, b in both])
        )
        precision, recall = right / own if own else 0.0, right / true if true else 0.0
        rows.append(ClassRow(name, precision, recall, 2 * right / (own + true) if own + true else 0.0, true))
    return sorted(rows, key=lambda row: -row.rows)


def pieces(task: TaskRun, row: int, spans: Sequence[WordSpan]) -> list[TextPiece]:
    """Return the text of a row, cut at its spans."""
    text, words = task.texts[row][0], task.predictions[row]
    types = scheme_of(task.names).found
    found, at = [], 0
    for span in spans:
        start, end = int(words[span.start, START]), int(words[span.end - 1, END])
        found += [TextPiece(text[at:start]), TextPiece(text[start:end], span.type, types.index(span.type) % COLOURS)]
        at = end
    return [piece for piece in (*found, TextPiece(text[at:])) if piece.text]


SECTION = TagsSection()
