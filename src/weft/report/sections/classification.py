"""Section for tasks with one class per row."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from weft.kinds.counted import Confusion, confusion
from weft.report.chart import digits
from weft.report.classes import BinaryCut, Thresholds, thresholds
from weft.report.sections.base import Which
from weft.report.sections.probability import ProbabilitySection, surest
from weft.runs.reader import TaskRun

CONFUSIONS = 3
"""Maximum number of pairs of classes that are shown, most frequent first."""


class ClassificationSection(ProbabilitySection):
    def confusion(self, task: TaskRun) -> Confusion:
        return confusion(task.targets, task.chosen.astype(np.int64, copy=False), len(task.names))

    def thresholds(self, task: TaskRun) -> Thresholds | None:
        return thresholds(task) if len(task.names) == 2 else None

    def curves(self, task: TaskRun) -> list[BinaryCut]:
        """Return one curve for two classes, else one curve per class (one vs. rest)."""
        if len(task.names) == 2:
            return self.decisions(task)
        return self.several_curves(task)

    def decisions(self, task: TaskRun) -> list[BinaryCut]:
        """Return the decision for the positive one of two classes."""
        if len(task.names) != 2:
            return []
        p, chosen = task.predictions, task.kind.decide(task.predictions, task.thresholds)
        return [BinaryCut(task.names[task.one], p[:, task.one], task.targets == task.one, chosen == task.one)]

    def several_curves(self, task: TaskRun) -> list[BinaryCut]:
        """Return the curves for more than two classes."""
        p, y, chosen = task.predictions, task.targets, task.chosen
        return [BinaryCut(name, p[:, i], y == i, chosen == i) for i, name in enumerate(task.names)]

    def groups(self, task: TaskRun) -> list[tuple[str, Which]]:
        return [(name, task.targets == i) for i, name in enumerate(task.names)]

    def errors(self, task: TaskRun) -> NDArray[np.float64]:
        """Return 1 - p of the true class."""
        found: NDArray[np.float64] = 1 - task.predictions[np.arange(len(task.targets)), task.targets]
        return found

    def confusions(self, task: TaskRun) -> Sequence[tuple[str, Which]]:
        y, chosen = task.targets, task.chosen
        if len(task.names) == 2:
            no, yes = task.names
            return [
                (f"False positives: “{no}” predicted as “{yes}”", (y == 0) & (chosen == 1)),
                (f"False negatives: “{yes}” predicted as “{no}”", (y == 1) & (chosen == 0)),
            ]
        return self.several_confusions(task)

    def several_confusions(self, task: TaskRun) -> Sequence[tuple[str, Which]]:
        """Return the most frequent confusions of more than two classes."""
        y, chosen, classes = task.targets, task.chosen, range(len(task.names))
        pairs = [(i, j) for i in classes for j in classes if i != j]
        common = sorted(pairs, key=lambda pair: -int(((y == pair[0]) & (chosen == pair[1])).sum()))[:CONFUSIONS]
        return [(f"“{task.names[i]}” predicted as “{task.names[j]}”", (y == i) & (chosen == j)) for i, j in common]

    def confidence(self, task: TaskRun) -> NDArray[np.float64]:
        """Return the probability of the predicted class."""
        sure: NDArray[np.float64] = task.predictions[np.arange(len(task.chosen)), task.chosen]
        return sure

    def doubtful(self, task: TaskRun) -> Which:
        """Find probable label errors, after confident learning (Northcutt et al., 2021).

        The wrong class has at least the probability that begins the top quarter of the rows where that class is right.
        """
        p, right = task.predictions, task.chosen == task.targets
        by_class = np.array([surest(p[right & (task.targets == i), i]) for i in range(p.shape[1])])
        return np.asarray(~right & (self.confidence(task) >= by_class[task.chosen]))

    def remark(self, task: TaskRun, row: int) -> str:
        true = 1 - float(self.errors(task)[row])
        return f"p {digits(float(self.confidence(task)[row]), 2)}, true class {digits(true, 2)}"


SECTION = ClassificationSection()
