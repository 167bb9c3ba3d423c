"""Section for tasks with a number per row."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from weft.report import numbers
from weft.report.chart import Chart, Colour, digits
from weft.report.numbers import NumberFindings
from weft.report.sections.base import MistakeCase, Section, Which
from weft.report.task_charts import Labelled, number_charts
from weft.runs.reader import TaskRun

FIFTH = 0.2
"""Share of the range; a larger error is a mistake."""
APART = 0.1
"""Share of the range; predictions of two runs that differ by more disagree."""
OUTLIER = 3.0
"""Distance from the median error, in robust standard deviations, beyond which a label is doubtful."""


class RegressionSection(Section):
    template = "regression.html"

    def find(self, task: TaskRun) -> NumberFindings:
        return numbers.find(task)

    def charts(self, task: TaskRun, found: NumberFindings) -> list[Chart]:
        return number_charts(task, found)

    def labelled(self, task: TaskRun) -> list[Labelled]:
        """Group rows by fifths of the range."""
        low, high = task.bounds
        edges = np.linspace(low, high, 6)
        part = np.clip(np.searchsorted(edges, task.targets, side="right") - 1, 0, 4)
        return [(f"{edges[i]:g} to {edges[i + 1]:g}", Colour(place=i / 4), part == i) for i in range(5)]

    def text(self, task: TaskRun) -> Text:
        found = numbers.find(task)
        return Text(f"{found.near:.1%} within {found.width:g} of the true value, mean error {found.mean_error:+.3f}")

    def errors(self, task: TaskRun) -> NDArray[np.float64]:
        return np.abs(task.predictions - task.targets)

    def error_unit(self, task: TaskRun) -> float:
        return task.bounds[1] - task.bounds[0]

    def is_wrong(self, task: TaskRun) -> Which:
        return np.asarray(self.errors(task) > FIFTH * self.error_unit(task))

    def cases(self, task: TaskRun) -> list[MistakeCase]:
        """Group errors into one to two fifths of the range and more: 1 to 2 and more than 2 on a scale of 0 to 5."""
        fifth, gap = FIFTH * self.error_unit(task), self.errors(task)
        return [
            MistakeCase(f"Off by {fifth:g} to {2 * fifth:g}", (gap > fifth) & (gap <= 2 * fifth), gap),
            MistakeCase(f"Off by more than {2 * fifth:g}", gap > 2 * fifth, gap),
        ]

    def doubtful(self, task: TaskRun) -> Which:
        """Find probable label errors: outliers among the errors."""
        gaps = task.predictions - task.targets
        centre = np.median(gaps)
        spread = 1.4826 * np.median(np.abs(gaps - centre))
        return np.asarray(np.abs(gaps - centre) > OUTLIER * spread) if spread > 0 else np.zeros(len(gaps), dtype=bool)

    def remark(self, task: TaskRun, row: int) -> str:
        return f"off by {digits(float(self.errors(task)[row]), 2)}"

    def disagreement(self, tasks: Sequence[TaskRun]) -> Which:
        answers = np.stack([task.predictions for task in tasks])
        return np.asarray(np.ptp(answers, axis=0) > APART * self.error_unit(tasks[0]))


SECTION = RegressionSection()
