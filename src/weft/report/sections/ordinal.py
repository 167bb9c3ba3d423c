"""Section for tasks with one of several ordered classes per row."""

from collections.abc import Sequence

import numpy as np

from weft.report.chart import Colour
from weft.report.classes import BinaryCut, Ordered, ordered
from weft.report.sections.base import Which
from weft.report.sections.classification import ClassificationSection
from weft.report.task_charts import Labelled
from weft.runs.reader import TaskRun


class OrdinalSection(ClassificationSection):
    curves_title = "ROC of every cut between classes"

    def ordered(self, task: TaskRun) -> Ordered:
        return ordered(task)

    def several_curves(self, task: TaskRun) -> list[BinaryCut]:
        """Return one curve per cut between classes."""
        p, y, chosen = task.predictions, task.targets, task.chosen
        above = [f"{name} or above" for name in task.names[1:-1]] + [task.names[-1]]
        return [BinaryCut(name, p[:, i:].sum(axis=1), y >= i, chosen >= i) for i, name in enumerate(above, start=1)]

    def labelled(self, task: TaskRun) -> list[Labelled]:
        """Return the classes in colours of the ordered scale."""
        names = self.groups(task)
        last = max(len(names) - 1, 1)
        return [(name, Colour(place=i / last), which) for i, (name, which) in enumerate(names)]

    def several_confusions(self, task: TaskRun) -> Sequence[tuple[str, Which]]:
        """Group mistakes by their distance from the true class."""
        gap = task.chosen - task.targets
        return [
            ("One class too high", gap == 1),
            ("One class too low", gap == -1),
            ("Off by two classes or more", np.abs(gap) >= 2),
        ]


SECTION = OrdinalSection()
