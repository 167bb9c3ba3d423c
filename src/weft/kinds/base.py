"""What the rest of weft asks a kind of label."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from torch import Tensor

from weft.kinds.forms import Form
from weft.kinds.truth import Predictions, Targets, Truth

if TYPE_CHECKING:
    from weft.kinds.labels import Labels, Values

Target = float | list[float]
Answer = tuple[str | list[str] | None, float, dict[str, float] | None]
"""label, score and probabilities of a `Prediction`"""


class Seen(Protocol):
    """The label column of a train file."""

    @property
    def where(self) -> str:
        """file and column, for messages"""

    def distinct(self, kind: "Kind") -> list[str]:
        """Every different cell."""

    def names(self, kind: "Kind") -> list[str]:
        """Every label that occurs, in order."""

    def require_names(self, declared: Sequence[str]) -> None:
        """Raise if the column cannot have the labels that a recipe declares."""


class Kind(ABC):
    """Everything that depends on what a label is. A kind has no state: what a task's labels are is in `Labels`."""

    name: ClassVar[str]
    """how recipes call it"""
    has_one_class: ClassVar[bool] = False
    """whether each row has exactly one of several classes"""
    has_numbers: ClassVar[bool] = False
    """whether a label is a number with a range"""
    default_loss: ClassVar[str]
    default_metrics: ClassVar[tuple[str, ...]]
    """the first is the primary one"""
    metrics: ClassVar[Mapping[str, Form]]
    """by the names of all metrics that fit, how each is computed"""
    target_type: ClassVar[type[np.float64] | type[np.int64]]
    hub_task: ClassVar[str]
    """how the hub calls such a task"""
    activation: ClassVar[Literal["softmax", "sigmoid", "identity"]]
    """how exported logits are read"""
    reading_code: ClassVar[tuple[str, ...]]
    """the lines of Python that print the answers of exported `logits`"""

    # labels, as recipes declare them and files have them

    @abstractmethod
    def check_declared(self, names: Sequence[Any] | None, bounds: tuple[float, float] | None, *, scaled: bool) -> None:
        """Raise ValueError if a recipe's `labels`, `range` and `scale` do not go with the kind."""

    def check_columns(self, columns: int) -> None:
        """Raise ValueError if a row's label cannot be spread over so many columns of 0 and 1."""
        if columns > 1:
            raise ValueError(f'`data.label` names several columns: that needs kind = "multilabel", not "{self.name}"')

    @abstractmethod
    def find_labels(
        self, column: Seen, names: Sequence[Any] | None, bounds: tuple[float, float] | None, *, scaled: bool
    ) -> "Labels":
        """The labels that a recipe declares, or else those seen in the train file."""

    @abstractmethod
    def fits(self, labels: "Labels") -> bool:
        """Whether these can be labels of this kind; those of a stranger's model may be anything."""

    @abstractmethod
    def expected(self, labels: "Labels") -> str:
        """For messages: what a label may be."""

    def counted(self, labels: "Labels") -> str:  # noqa: ARG002
        """For messages: what labels a task has."""
        return f"{self.name} labels"

    @abstractmethod
    def parts(self, cell: str) -> list[str]:
        """The labels that a cell names."""

    @abstractmethod
    def mapped(self, cell: str, names: Mapping[str, str]) -> str:
        """A cell with its labels under other names."""

    # targets, as training has them

    @abstractmethod
    def target(self, cell: str, labels: "Labels") -> Target | None:
        """A cell as training wants it, or None if it is no label."""

    @abstractmethod
    def blank(self, labels: "Labels") -> Target:
        """What stands for a target that is not there."""

    def in_units(self, labels: "Labels", values: "Values") -> "Values":  # noqa: ARG002
        """Targets or answers in the label's own units."""
        return values

    def from_units(self, labels: "Labels", values: "Values") -> "Values":  # noqa: ARG002
        """The inverse of `in_units`."""
        return values

    @abstractmethod
    def distribution(self, labels: "Labels", targets: Targets) -> str:
        """How often each label occurs, in one line."""

    @abstractmethod
    def divergence(self, one: Tensor, two: Tensor) -> Tensor:
        """[n] how far two answers are apart, for regularizers."""

    def questions(self, labels: "Labels") -> int | None:  # noqa: ARG002
        """How many yes-or-no questions a row's label answers; None if it is something else."""
        return None

    # answers

    @abstractmethod
    def decide(self, predictions: Predictions) -> Targets:
        """[n] or [n, labels] what a model answers, in the form of targets; numbers are in the label's own units."""

    def temper(self, predictions: Predictions, temperature: float) -> Predictions:  # noqa: ARG002
        """Probabilities at a temperature: above 1 they move towards each other, below 1 apart; their order stays.

        Dividing logits by T is raising probabilities to the power 1 / T, so this needs no logits and fits every loss.
        """
        return predictions

    @abstractmethod
    def majority(self, truth: Truth) -> Predictions:
        """The answers of a model that always gives what is right most often."""

    def constant_answer(self, labels: "Labels", predictions: Predictions, targets: Targets) -> str | None:  # noqa: ARG002
        """The one answer for all rows, if that is suspicious and no metric is undefined by it."""
        return None

    def check_metric(self, labels: "Labels", metric: str, key: str) -> None:  # noqa: B027
        """Raise UserError if one of the kind's metrics does not go with these labels."""

    @abstractmethod
    def answer(self, labels: "Labels", value: Any) -> Answer:
        """What a model's answer for one row says."""

    @abstractmethod
    def no_answer(self) -> Answer:
        """Of a row that is skipped."""

    @abstractmethod
    def answer_columns(self, labels: "Labels") -> list[tuple[str, pa.DataType]]:
        """The columns of answers in a file."""

    @abstractmethod
    def moves(self, labels: "Labels", before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
        """[n] how far answers move, from 0 to 1; `before` and `after` are in the label's own units."""

    # predictions/TASK.parquet, and what reports read of it

    @property
    @abstractmethod
    def cell_type(self) -> pa.DataType:
        """the Arrow type of a label"""

    @abstractmethod
    def cells(self, values: Targets, names: Sequence[str]) -> Any:
        """[n] targets or decided answers, in the label's own units, as a column of labels."""

    @abstractmethod
    def read_cells(self, cells: Sequence[Any], names: Sequence[str]) -> Targets:
        """The inverse of `cells`."""

    @abstractmethod
    def read_predictions(self, columns: Mapping[str, pa.ChunkedArray], names: Sequence[str]) -> Predictions:
        """[n, classes] probabilities, or [n] numbers in the label's own units."""

    @abstractmethod
    def shown(self, names: Sequence[str], answer: Any) -> str:
        """A target or a decided answer of one row in the label's own words."""

    # export

    @abstractmethod
    def describe_logits(self, labels: "Labels") -> str:
        """What exported `logits` are, for the README."""
