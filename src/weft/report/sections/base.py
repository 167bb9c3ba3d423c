"""What a report asks of a kind of label."""

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
"""[n] whether a row belongs"""


@dataclass(frozen=True)
class MistakeCase:
    """One way to be wrong."""

    title: str
    which: Which
    order: NDArray[np.float64]
    """[n] the largest are shown first"""


class Section(ABC):
    """Everything in a report that depends on what a label is."""

    template: ClassVar[str]
    """the file in templates/sections with the tables of `find`"""

    @abstractmethod
    def find(self, task: TaskRun) -> Any:
        """What there is to know about the dev rows; the template and the charts read it."""

    @abstractmethod
    def charts(self, task: TaskRun, found: Any) -> list[Chart]:
        """Charts of what was found."""

    @abstractmethod
    def labelled(self, task: TaskRun) -> list[Labelled]:
        """The groups of rows that a picture of embeddings tells apart."""

    @abstractmethod
    def text(self, task: TaskRun) -> RenderableType:
        """The same in a terminal, in short."""

    @abstractmethod
    def errors(self, task: TaskRun) -> NDArray[np.float64]:
        """[n] how wrong each row is: 1 - p of the truth, or how far off a number is."""

    def error_unit(self, task: TaskRun) -> float:  # noqa: ARG002
        """The largest error there can be."""
        return 1.0

    @abstractmethod
    def is_wrong(self, task: TaskRun) -> Which:
        """[n] whether a row counts as a mistake."""

    @abstractmethod
    def cases(self, task: TaskRun) -> list[MistakeCase]:
        """The ways to be wrong, in the order of the page."""

    @abstractmethod
    def doubtful(self, task: TaskRun) -> Which:
        """[n] rows whose label the model contradicts more firmly than it usually supports one."""

    @abstractmethod
    def remark(self, task: TaskRun, row: int) -> str:
        """How wrong a row is, in words."""

    @abstractmethod
    def disagreement(self, tasks: Sequence[TaskRun]) -> Which:
        """[n] where not all runs give the same answer."""
