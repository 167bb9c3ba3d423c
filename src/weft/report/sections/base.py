"""The interface between reports and kinds of labels."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from rich.console import RenderableType

from weft.report.chart import Chart
from weft.report.task_charts import Labelled
from weft.runs.reader import TaskRun

Which = NDArray[np.bool_]
"""[n] Whether a row is in the group."""


@dataclass(frozen=True)
class MistakeCase:
    """One kind of mistake."""

    title: str
    which: Which
    order: NDArray[np.float64]
    """[n] Sort key; rows with the largest values are shown first."""


class Section(ABC):
    """Everything in a report that depends on the kind of label."""

    template: ClassVar[str]
    """File in templates/sections with the tables of `find`."""

    @abstractmethod
    def find(self, task: TaskRun) -> Any:
        """Compute the statistics of the dev rows, for the template and the charts."""

    @abstractmethod
    def charts(self, task: TaskRun, found: Any) -> list[Chart]:
        """Return charts of the statistics."""

    @abstractmethod
    def labelled(self, task: TaskRun) -> list[Labelled]:
        """Return the groups of rows that the chart of embeddings distinguishes by colour."""

    @abstractmethod
    def text(self, task: TaskRun) -> RenderableType:
        """Return a summary of the statistics for the terminal."""

    @abstractmethod
    def errors(self, task: TaskRun) -> NDArray[np.float64]:
        """Return the error of each row [n]: 1 - p of the true label, or the absolute error of a number."""

    def error_unit(self, task: TaskRun) -> float:  # noqa: ARG002
        """Return the maximum possible error."""
        return 1.0

    @abstractmethod
    def is_wrong(self, task: TaskRun) -> Which:
        """Return whether each row [n] counts as a mistake."""

    @abstractmethod
    def cases(self, task: TaskRun) -> list[MistakeCase]:
        """Return the kinds of mistakes, in the order of the page."""

    @abstractmethod
    def doubtful(self, task: TaskRun) -> Which:
        """Return whether each row [n] probably has a wrong label: the model confidently contradicts it."""

    @abstractmethod
    def remark(self, task: TaskRun, row: int) -> str:
        """Return the size of the error of a row in words."""

    @abstractmethod
    def disagreement(self, tasks: Sequence[TaskRun]) -> Which:
        """Return whether the predictions of the runs differ, per row [n]."""
