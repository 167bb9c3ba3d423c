"""The interface of a kind of label."""

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
WordSplit = Literal["punctuation", "whitespace"]
"""how texts are split into words: also around punctuation, or at whitespace only"""
Answer = tuple[str | list[str] | list[dict[str, Any]] | None, float, dict[str, float] | None]
"""label, score and probabilities of a `Prediction`"""


class Seen(Protocol):
    """The label column of a train file."""

    @property
    def where(self) -> str:
        """file and column, for error messages"""

    def distinct(self, kind: "Kind") -> list[str]:
        """Return the distinct cells."""

    def names(self, kind: "Kind") -> list[str]:
        """Return every label that occurs, in order."""

    def require_names(self, declared: Sequence[str]) -> None:
        """Raise UserError if the column cannot contain the labels that a recipe declares."""


class Kind(ABC):
    """Everything that depends on the kind of label. A kind is stateless: the labels of a task are in `Labels`."""

    name: ClassVar[str]
    """its name in recipes"""
    has_one_class: ClassVar[bool] = False
    """whether each row, or each word of a row, has exactly one of several classes"""
    labels_words: ClassVar[bool] = False
    """whether each word of a text has a label"""
    has_numbers: ClassVar[bool] = False
    """whether a label is a number with a range"""
    default_loss: ClassVar[str]
    """name of the loss that a task uses by default"""
    default_pooling: ClassVar[str] = "cls"
    """name of the pooling that a task uses by default"""
    default_metrics: ClassVar[tuple[str, ...]]
    """names of the default metrics, the primary metric first"""
    metrics: ClassVar[Mapping[str, Form]]
    """metric name -> how it is computed, for every supported metric"""
    target_type: ClassVar[type[np.float64] | type[np.int64]]
    """NumPy type of a target"""
    hub_task: ClassVar[str]
    """the task's name on the Hugging Face hub"""
    auto_class: ClassVar[str] = "AutoModelForSequenceClassification"
    """the class of `transformers` that opens an exported task"""
    activation: ClassVar[Literal["softmax", "sigmoid", "identity"]]
    """the function that turns exported logits into predictions"""
    reading_code: ClassVar[tuple[str, ...]]
    """lines of Python that print the predictions of exported `logits`"""

    # labels, as declared in recipes and found in files

    @abstractmethod
    def check_declared(self, names: Sequence[Any] | None, bounds: tuple[float, float] | None, *, scaled: bool) -> None:
        """Raise ValueError if a recipe's `labels`, `range` and `scale` do not fit the kind."""

    def check_columns(self, columns: int) -> None:
        """Raise ValueError if the kind does not support labels in this number of 0/1 columns."""
        if columns > 1:
            raise ValueError(f'`data.label` names several columns: that needs kind = "multilabel", not "{self.name}"')

    def check_words(
        self, reading: str, *, keeps_words: bool, masks: bool, words: str | None, subwords: str | None
    ) -> None:
        """Raise ValueError if the kind does not support how a recipe reads words.

        `keeps_words`: whether the pooling has one vector per word. `masks`: whether texts are masked.
        """
        del reading, masks
        if keeps_words:
            raise ValueError(f"`pooling` gives a vector for each word, but a {self.name} needs one for each text")
        for key, value in (("words", words), ("subwords", subwords)):
            if value is not None:
                raise ValueError(f'`{key}` is for kind = "tags", but the task is a {self.name}')

    def word_split(self, chosen: WordSplit | None) -> WordSplit | None:  # noqa: ARG002
        """Return how texts are split into words; None if the labels are not of words."""
        return None

    @abstractmethod
    def find_labels(
        self, column: Seen, names: Sequence[Any] | None, bounds: tuple[float, float] | None, *, scaled: bool
    ) -> "Labels":
        """Return the labels that a recipe declares, or else those found in the train file."""

    @abstractmethod
    def fits(self, labels: "Labels") -> bool:
        """Whether these are valid labels of this kind. Labels of an untrusted model can be invalid."""

    @abstractmethod
    def expected(self, labels: "Labels") -> str:
        """Describe the valid labels, for error messages."""

    def counted(self, labels: "Labels") -> str:  # noqa: ARG002
        """Describe the number and kind of a task's labels, for error messages."""
        return f"{self.name} labels"

    @abstractmethod
    def parts(self, cell: str) -> list[str]:
        """Return the labels in a cell."""

    @abstractmethod
    def mapped(self, cell: str, names: Mapping[str, str]) -> str:
        """Return a cell with its labels renamed."""

    # targets, as training uses them

    @abstractmethod
    def target(self, cell: str, labels: "Labels") -> Target | None:
        """Return the training target of a cell, or None if it is not a valid label."""

    @abstractmethod
    def blank(self, labels: "Labels") -> Target:
        """Return a placeholder for a missing target."""

    def word_target(self, cell: str, words: Sequence[tuple[int, int]], labels: "Labels") -> NDArray[np.int64]:
        """Return the targets of the words of a text, given their character ranges."""
        raise NotImplementedError(f"a {self.name} has no labels of words")

    def flat(self, targets: Targets) -> Targets:
        """Return the targets as one plain array: of all rows, or of all their words."""
        return targets

    def in_units(self, labels: "Labels", values: "Values") -> "Values":  # noqa: ARG002
        """Convert targets or predictions to the label's units."""
        return values

    def from_units(self, labels: "Labels", values: "Values") -> "Values":  # noqa: ARG002
        """Invert `in_units`."""
        return values

    @abstractmethod
    def distribution(self, labels: "Labels", targets: Targets) -> str:
        """Describe the distribution of the labels in one line."""

    @abstractmethod
    def divergence(self, one: Tensor, two: Tensor) -> Tensor:
        """[n] divergence between two predictions, for regularizers and output penalties."""

    def questions(self, labels: "Labels") -> int | None:  # noqa: ARG002
        """Number of binary decisions in a row's label; None if the label is not a set of binary decisions."""
        return None

    # predictions

    @abstractmethod
    def decide(self, predictions: Predictions) -> Targets:
        """[n] or [n, labels] decisions in the form of targets; numbers are in the label's units."""

    def temper(self, predictions: Predictions, temperature: float) -> Predictions:  # noqa: ARG002
        """Apply temperature scaling. A temperature above 1 flattens probabilities, below 1 sharpens them.

        Dividing logits by T equals raising probabilities to the power 1 / T and normalizing them, so this needs no
        logits and supports every loss. The order of the probabilities does not change.
        """
        return predictions

    @abstractmethod
    def majority(self, truth: Truth) -> Predictions:
        """Return the predictions of the majority-class baseline."""

    def constant_answer(self, labels: "Labels", predictions: Predictions, targets: Targets) -> str | None:  # noqa: ARG002
        """Return the label that is predicted for every row, or None if the predictions are not constant.

        None too where a constant prediction is expected or makes a metric undefined, which is reported already.
        """
        return None

    def check_metric(self, labels: "Labels", metric: str, key: str) -> None:  # noqa: B027
        """Raise UserError if one of the kind's metrics does not support these labels."""

    @abstractmethod
    def answer(self, labels: "Labels", value: Any) -> Answer:
        """Return label, score and probabilities of one row's prediction."""

    @abstractmethod
    def no_answer(self) -> Answer:
        """Return the answer for a skipped row."""

    @abstractmethod
    def answer_columns(self, labels: "Labels") -> list[tuple[str, pa.DataType]]:
        """Return names and types of the columns of a prediction file."""

    def outcome(self, label: Any) -> Any:
        """Return the part of a predicted label that should not change if words of the text are swapped."""
        return label

    @abstractmethod
    def moves(self, labels: "Labels", before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
        """[n] distance between two predictions, from 0 to 1; `before` and `after` are in the label's units."""

    # predictions/TASK.parquet, as written by runs and read by reports

    @property
    @abstractmethod
    def cell_type(self) -> pa.DataType:
        """the Arrow type of a label"""

    @abstractmethod
    def cells(self, values: Targets, names: Sequence[str]) -> Any:
        """[n] targets or decisions, in the label's units, as a column of labels."""

    def saved_columns(self, labels: "Labels", predictions: Predictions) -> dict[str, tuple[pa.DataType, Any]]:
        """Return the columns beside label and prediction, with their types: by default one probability per name."""
        return {f"p_{name}": (pa.float64(), predictions[:, i]) for i, name in enumerate(labels.names)}

    @abstractmethod
    def read_cells(self, cells: Sequence[Any], names: Sequence[str]) -> Targets:
        """Invert `cells`."""

    @abstractmethod
    def read_predictions(self, columns: Mapping[str, pa.ChunkedArray], names: Sequence[str]) -> Predictions:
        """[n, classes] probabilities, or [n] numbers in the label's units."""

    @abstractmethod
    def shown(self, names: Sequence[str], answer: Any) -> str:
        """Format a target or decision of one row with the label names."""

    # export

    @abstractmethod
    def describe_logits(self, labels: "Labels") -> str:
        """Describe exported `logits`, for the README."""
