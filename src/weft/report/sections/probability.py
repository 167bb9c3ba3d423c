"""Base class of the sections for tasks that predict probabilities."""

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from weft.evaluation.calibration import cross_fitted, fit_temperature, reliability
from weft.kinds.counted import Confusion
from weft.kinds.probability import ProbabilityKind
from weft.report.chart import Chart, Colour
from weft.report.classes import BinaryCut, ClassFindings, Ordered, Thresholds, class_rows, precision_recall, roc, tuning
from weft.report.sections.base import MistakeCase, Section, Which
from weft.report.tables import plain_table
from weft.report.task_charts import Labelled, calibration_chart, confusion_charts, precision_recall_chart, roc_chart
from weft.runs.reader import TaskRun

PLACES = 6
"""Maximum number of colours in the chart of embeddings; further labels share one."""
WIDEST = 8
"""Maximum number of classes for which the terminal shows the confusion matrix."""


class ProbabilitySection(Section):
    template = "probability.html"
    curves_title = "ROC of every class"
    """Title of a chart with several curves."""

    def find(self, task: TaskRun) -> ClassFindings:
        assert isinstance(task.kind, ProbabilityKind), "a section belongs to its kind"
        tempered = cross_fitted(task.kind, task.predictions, task.targets)
        return ClassFindings(
            confusion=self.confusion(task),
            rows=class_rows(task),
            rocs=[roc(curve) for curve in self.curves(task) if 0 < curve.true.sum() < len(curve.true)],
            precision_recall=[precision_recall(curve) for curve in self.decisions(task) if curve.true.any()],
            tuning=tuning(task),
            reliability=reliability(task.kind, task.predictions, task.targets),
            temperature=fit_temperature(task.kind, task.predictions, task.targets),
            error_tempered=reliability(task.kind, tempered, task.targets).error,
            ordered=self.ordered(task),
            thresholds=self.thresholds(task),
        )

    def confusion(self, task: TaskRun) -> Confusion | None:  # noqa: ARG002
        return None

    def ordered(self, task: TaskRun) -> Ordered | None:  # noqa: ARG002
        return None

    def thresholds(self, task: TaskRun) -> Thresholds | None:  # noqa: ARG002
        return None

    @abstractmethod
    def curves(self, task: TaskRun) -> list[BinaryCut]:
        """Return the binary questions whose ROC curves are drawn."""

    @abstractmethod
    def decisions(self, task: TaskRun) -> list[BinaryCut]:
        """Return the binary decisions whose precision-recall curves are drawn."""

    def charts(self, task: TaskRun, found: ClassFindings) -> list[Chart]:
        title = self.curves_title if len(found.rocs) > 1 else "ROC"
        confusion = [] if found.confusion is None else confusion_charts(task, found.confusion)
        curves = [precision_recall_chart(task, found.precision_recall)] if found.precision_recall else []
        return [*confusion, roc_chart(task, found.rocs, title), *curves, calibration_chart(task, found.reliability)]

    @abstractmethod
    def groups(self, task: TaskRun) -> list[tuple[str, Which]]:
        """Return the rows of each label; every row is in one group."""

    def labelled(self, task: TaskRun) -> list[Labelled]:
        names = self.groups(task)
        if len(names) <= PLACES:
            return [(name, Colour(i), which) for i, (name, which) in enumerate(names)]
        common = sorted(names, key=lambda item: -int(item[1].sum()))[:PLACES]
        rest = ~np.any([which for _, which in common], axis=0)
        return [*((name, Colour(i), which) for i, (name, which) in enumerate(common)), ("others", Colour(PLACES), rest)]

    def text(self, task: TaskRun) -> Table:
        """Return precision, recall, F1 and the confusion matrix."""
        counts = self.confusion(task) if len(task.names) <= WIDEST else None
        answered = [f"→ {i + 1}" for i in range(len(task.names))] if counts is not None else []
        table = plain_table("class", right=("precision", "recall", "F1", "rows", *answered))
        for i, row in enumerate(class_rows(task)):
            own = [f"{int(count):,}" for count in counts[i]] if counts is not None else []
            table.add_row(
                f"{i + 1} {row.name}", *(f"{v:.3f}" for v in (row.precision, row.recall, row.f1)), f"{row.rows:,}", *own
            )
        return table

    def is_wrong(self, task: TaskRun) -> Which:
        return _any(task.chosen != task.targets)

    def cases(self, task: TaskRun) -> list[MistakeCase]:
        wrong = self.errors(task)
        found = [MistakeCase(title, which, wrong) for title, which in self.confusions(task)]
        return [*found, MistakeCase("Most confident mistakes", self.is_wrong(task), self.confidence(task))]

    @abstractmethod
    def confusions(self, task: TaskRun) -> Sequence[tuple[str, Which]]:
        """Return the kinds of confusions and their rows."""

    @abstractmethod
    def confidence(self, task: TaskRun) -> NDArray[np.float64]:
        """Return the confidence of each prediction [n], for the ranking of mistakes."""

    def disagreement(self, tasks: Sequence[TaskRun]) -> Which:
        chosen = np.stack([task.chosen for task in tasks])
        return _any((chosen != chosen[0]).any(axis=0))


def _any(different: Which) -> Which:
    """Return whether any label of a row differs: [n]."""
    return np.asarray(different.reshape(len(different), -1).any(axis=1))


def surest(values: NDArray[np.float64]) -> float:
    """Return the 75 % quantile, but at least 0.5: an unconfident model is no evidence of label errors."""
    return max(float(np.quantile(values, 0.75)), 0.5) if len(values) else float("inf")
