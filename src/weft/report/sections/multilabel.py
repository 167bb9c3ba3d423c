"""Section for tasks with any number of labels per row."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from weft.report.chart import digits
from weft.report.classes import BinaryCut
from weft.report.sections.base import Which
from weft.report.sections.probability import ProbabilitySection, surest
from weft.runs.reader import TaskRun


class MultilabelSection(ProbabilitySection):
    def curves(self, task: TaskRun) -> list[BinaryCut]:
        p, yes = task.predictions, task.targets > 0.5
        chosen = task.kind.decide(p, task.thresholds) > 0
        return [BinaryCut(name, p[:, i], yes[:, i], chosen[:, i]) for i, name in enumerate(task.names)]

    def decisions(self, task: TaskRun) -> list[BinaryCut]:
        """Return all labels together, then each label."""
        each = self.curves(task)
        scores, true, chosen = (
            np.concatenate(own) for own in zip(*((cut.scores, cut.true, cut.chosen) for cut in each), strict=True)
        )
        return [BinaryCut("all labels (micro)", scores, true, chosen), *each]

    def groups(self, task: TaskRun) -> list[tuple[str, Which]]:
        """Group rows by their first label."""
        first = np.where(task.targets.any(axis=1), task.targets.argmax(axis=1), -1)
        return [(name, first == i) for i, name in enumerate(task.names)] + [("none", first == -1)]

    def errors(self, task: TaskRun) -> NDArray[np.float64]:
        """Return the largest error over the labels of each row."""
        worst: NDArray[np.float64] = np.abs(task.predictions - task.targets).max(axis=1)
        return worst

    def confusions(self, task: TaskRun) -> Sequence[tuple[str, Which]]:
        y, chosen = task.targets, task.chosen
        return [
            ("Missed labels", ((y > 0.5) & (chosen == 0)).any(axis=1)),
            ("Spurious labels", ((y < 0.5) & (chosen == 1)).any(axis=1)),
        ]

    def confidence(self, task: TaskRun) -> NDArray[np.float64]:
        """Return the confidence in the most confident wrong label of each row."""
        sure: NDArray[np.float64] = np.where(task.chosen != task.targets, np.abs(task.predictions - 0.5), 0).max(axis=1)
        return sure

    def doubtful(self, task: TaskRun) -> Which:
        """Find probable label errors as for classes, per label."""
        sure = np.maximum(task.predictions, 1 - task.predictions)
        right = task.chosen == task.targets
        usual = [surest(sure[right[:, i], i]) for i in range(sure.shape[1])]
        return np.asarray((~right & (sure >= usual)).any(axis=1))

    def remark(self, task: TaskRun, row: int) -> str:
        return f"largest label error {digits(float(self.errors(task)[row]), 2)}"


SECTION = MultilabelSection()
