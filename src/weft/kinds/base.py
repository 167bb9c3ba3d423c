"""The interface of a kind of label."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from torch import Tensor

from weft.kinds.forms import Form
from weft.kinds.noise import Features, Folds, Suspects
from weft.kinds.truth import Predictions, Targets, Thresholds, Truth

if TYPE_CHECKING:
    from weft.kinds.labels import Labels, Values

Target = float | list[float]
WordSplit = Literal["punctuation", "whitespace"]
"""how texts are split into words: also around punctuation, or at whitespace only"""
Vectors = NDArray[np.float32]
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
    distills: ClassVar[bool] = False
    """whether students can learn from predictions: each is a row of numbers, which `imitation` compares"""
    default_loss: ClassVar[str]
    """name of the loss that a task uses by default"""
    default_metrics: ClassVar[tuple[str, ...]]
    """names of the default metrics, the primary metric first"""
    metrics: ClassVar[Mapping[str, Form]]
    """metric name -> how it is computed, for every supported metric"""
    tuned_for: ClassVar[tuple[str, ...]] = ()
    """metrics that thresholds of binary decisions are tuned for, if primary; otherwise, F1 of each decision's label"""
    target_type: ClassVar[type[np.float64] | type[np.int64]]
    """NumPy type of a target"""
    hub_task: ClassVar[str]
    """the task's name on the Hugging Face hub"""
    auto_class: ClassVar[str] = "AutoModelForSequenceClassification"
    """the class of `transformers` that opens an exported task"""
    activation: ClassVar[Literal["softmax", "sigmoid", "identity"]]
    """the function that turns exported logits into predictions"""
    defaults: ClassVar[Mapping[str, Any]] = {}
    """task keys whose default differs for this kind; `data` has those of the data table"""
    ranks: ClassVar[bool] = False
    """whether rows are scored against each other, by `ranked`, instead of one by one"""
    why_no_suspects: ClassVar[str | None] = None
    """why an audit cannot search for label errors; None if it can, by `cross_predict` and `suspects`"""

    # labels, as declared in recipes and found in files

    @abstractmethod
    def check_declared(self, names: Sequence[Any] | None, bounds: tuple[float, float] | None, *, scaled: bool) -> None:
        """Raise ValueError if a recipe's `labels`, `range` and `scale` do not fit the kind."""

    def check_columns(self, columns: int) -> None:
        """Raise ValueError if the kind does not support labels in this number of 0/1 columns."""
        if columns == 0:
            raise ValueError(f'`data.label` is empty, but kind = "{self.name}" needs a label column')
        if columns > 1:
            raise ValueError(f'`data.label` names several columns: that needs kind = "multilabel", not "{self.name}"')

    def check_words(
        self,
        reading: str,
        *,
        keeps_words: bool,
        masks: bool,
        long_texts: str,
        words: str | None,
        subwords: str | None,
    ) -> None:
        """Raise ValueError if the kind does not support how a recipe reads words.

        `keeps_words`: whether the pooling has one vector per word. `masks`: whether texts are masked.
        `long_texts`: the name of the way in which long texts are read.
        """
        del reading, masks, long_texts
        if keeps_words:
            raise ValueError(f"`pooling` gives a vector for each word, but a {self.name} needs one for each text")
        for key, value in (("words", words), ("subwords", subwords)):
            if value is not None:
                raise ValueError(f'`{key}` is for kind = "tags", but the task is a {self.name}')

    def word_split(self, chosen: WordSplit | None) -> WordSplit | None:  # noqa: ARG002
        """Return how texts are split into words; None if the labels are not of words."""
        return None

    def check_texts(self, reading: str, negatives: int) -> None:  # noqa: ARG002
        """Raise ValueError if the kind does not support a reading, or hard negatives in this number of columns."""
        if negatives:
            raise ValueError(f'`data.negative` needs kind = "matches", not "{self.name}"')

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

    def imitation(self, student: Tensor, teacher: Tensor, temperature: float) -> Tensor:  # noqa: ARG002
        """[n] distillation loss: how far a student's predictions are from its teacher's.

        Predictions at temperature T are `p^(1/T)`, normalized, which equals logits divided by T. Numbers have none.
        """
        return self.divergence(student, teacher)

    # binary decisions, for labels that are a set of them

    def decisions(self, names: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002
        """Return what each binary decision of a row is about; empty if a label is not a set of binary decisions."""
        return ()

    def yes_scores(self, predictions: Predictions) -> Predictions:
        """[n, decisions] probability of yes in each binary decision"""
        return np.empty((len(predictions), 0))

    def is_yes(self, targets: Targets) -> NDArray[np.bool_]:
        """[n, decisions] whether yes is true in each binary decision"""
        return np.empty((len(targets), 0), dtype=np.bool_)

    def temper_thresholds(self, thresholds: Thresholds, temperature: float) -> Thresholds:  # noqa: ARG002
        """Return the thresholds that give the same decisions on tempered predictions."""
        return thresholds

    # predictions

    @abstractmethod
    def decide(self, predictions: Predictions, thresholds: Thresholds | None = None) -> Targets:
        """[n] or [n, labels] decisions in the form of targets; numbers are in the label's units.

        `thresholds` are those of binary decisions: yes above them. None decides for what is more likely.
        """

    def temper(self, predictions: Predictions, temperature: float) -> Predictions:  # noqa: ARG002
        """Apply temperature scaling. A temperature above 1 flattens probabilities, below 1 sharpens them.

        Dividing logits by T equals raising probabilities to the power 1 / T and normalizing them, so this needs no
        logits and supports every loss. The order of the probabilities does not change.
        """
        return predictions

    def ranked(self, first: Vectors, second: Vectors, targets: Targets) -> Predictions:
        """[n, k] what metrics need, from the vectors [n, width] of both texts of all rows of a split."""
        raise NotImplementedError(f"{self.name} scores rows one by one")

    @abstractmethod
    def majority(self, truth: Truth) -> Predictions:
        """Return the predictions of the majority-class baseline."""

    def constant_answer(self, labels: "Labels", chosen: Targets, targets: Targets) -> str | None:  # noqa: ARG002
        """Return the label that is `chosen` for every row, or None if the decisions are not constant.

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

    def relevance(self, labels: "Labels", answer: Answer) -> float | None:  # noqa: ARG002
        """Return how well the two texts of a row match, by which documents are ranked; None if an answer has no such
        number."""
        return None

    @abstractmethod
    def answer_columns(self, labels: "Labels") -> list[tuple[str, pa.DataType]]:
        """Return names and types of the columns of a prediction file."""

    def outcome(self, label: Any) -> Any:
        """Return the part of a predicted label that should not change if words of the text are swapped."""
        return label

    @abstractmethod
    def moves(self, labels: "Labels", before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
        """[n] distance between two predictions, from 0 to 1; `before` and `after` are in the label's units."""

    # audits of data

    def class_counts(self, labels: "Labels", targets: Targets) -> dict[str, int]:  # noqa: ARG002
        """Return the number of rows with each class or label; empty if labels are numbers."""
        return {}

    def groups(self, labels: "Labels", targets: Targets) -> NDArray[np.int64]:  # noqa: ARG002
        """[n] group of each label: equal labels, or numbers in the same fifth of their range."""
        return np.unique(targets, axis=0, return_inverse=True)[1].reshape(-1)

    @abstractmethod
    def differ(self, labels: "Labels", one: Targets, two: Targets) -> NDArray[np.bool_]:
        """[n] whether two labels of the same text contradict each other."""

    def cross_predict(self, labels: "Labels", targets: Targets, features: Features, folds: Folds) -> Predictions:
        """Return out-of-sample predictions of a linear model on `features`; each fold is held out once."""
        raise NotImplementedError(self.why_no_suspects)

    def suspects(self, targets: Targets, predictions: Predictions) -> Suspects:
        """Return the rows whose labels are probably wrong, given out-of-sample predictions."""
        raise NotImplementedError(self.why_no_suspects)

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
    def reading_code(self, labels: "Labels") -> list[str]:
        """Return lines of Python that print the predictions of exported `logits`."""

    @abstractmethod
    def describe_logits(self, labels: "Labels") -> str:
        """Describe exported `logits`, for the README."""
