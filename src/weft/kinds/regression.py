"""Regression: one number per row."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from torch import Tensor

from weft.foundation.errors import UserError
from weft.kinds import forms, noise
from weft.kinds.base import Answer, Kind, Seen
from weft.kinds.cells import as_float, canonical
from weft.kinds.forms import Form
from weft.kinds.labels import Labels, Values
from weft.kinds.truth import Predictions, Targets, Thresholds, Truth

APART = 0.25
"""two labels of one text contradict each other if they differ by more than this fraction of the range"""
FIFTHS = 5


class Regression(Kind):
    """A target is a number, scaled to 0..1 by default; predictions are in the label's units."""

    name = "regression"
    has_numbers = True
    distills = True
    default_loss = "mse"
    default_metrics = ("pearson", "spearman", "mse")
    metrics: ClassVar[Mapping[str, Form]] = {
        "pearson": forms.pearson(),
        "spearman": forms.spearman(),
        "mse": forms.mse(),
    }
    target_type = np.float64
    hub_task = "sentence-similarity"
    activation = "identity"

    def check_declared(
        self,
        names: Sequence[Any] | None,
        bounds: tuple[float, float] | None,
        *,
        scaled: bool,  # noqa: ARG002
    ) -> None:
        if names is not None:
            raise ValueError("`labels` names classes, but the task is a regression; `range` declares its bounds")
        if bounds is not None and not bounds[0] < bounds[1]:
            raise ValueError(f"`range` is {list(bounds)}; expected the smaller number first")

    def find_labels(
        self,
        column: Seen,
        names: Sequence[Any] | None,  # noqa: ARG002
        bounds: tuple[float, float] | None,
        *,
        scaled: bool,
    ) -> Labels:
        low, high = bounds or self._seen_range(column)
        return Labels(self, low=low, high=high, bounded=bounds is not None, scaled=scaled)

    def _seen_range(self, column: Seen) -> tuple[float, float]:
        values = {value for text in column.distinct(self) if (value := as_float(text.strip())) is not None}
        if len(values) < 2:
            raise UserError(f"{column.where} has {len(values)} distinct numbers; a regression needs at least two")
        return min(values), max(values)

    def fits(self, labels: Labels) -> bool:
        finite = math.isfinite(labels.low) and math.isfinite(labels.high)
        return not labels.names and finite and labels.low < labels.high

    def expected(self, labels: Labels) -> str:
        return f"a number from {labels.low:g} to {labels.high:g}" if labels.bounded else "a number"

    def parts(self, cell: str) -> list[str]:
        return [canonical(cell)]

    def mapped(self, cell: str, names: Mapping[str, str]) -> str:
        return names.get(canonical(cell), cell)

    def target(self, cell: str, labels: Labels) -> float | None:
        value = as_float(cell.strip())
        if value is None or (labels.bounded and not labels.low <= value <= labels.high):
            return None
        return self.from_units(labels, value)

    def blank(self, labels: Labels) -> float:  # noqa: ARG002
        return 0.0

    def in_units(self, labels: Labels, values: Values) -> Values:
        return labels.low + values * (labels.high - labels.low) if labels.scaled else values

    def from_units(self, labels: Labels, values: Values) -> Values:
        return (values - labels.low) / (labels.high - labels.low) if labels.scaled else values

    def distribution(self, labels: Labels, targets: Targets) -> str:
        values = labels.in_units(np.asarray(targets, dtype=np.float64))
        return f"labels {values.min():g} to {values.max():g}, mean {values.mean():.2f}"

    def divergence(self, one: Tensor, two: Tensor) -> Tensor:
        return (one - two).square()

    def decide(self, predictions: Predictions, thresholds: Thresholds | None = None) -> Predictions:  # noqa: ARG002
        return predictions

    def majority(self, truth: Truth) -> Predictions:
        """Predict the mean."""
        return np.full(len(truth), truth.targets.mean(), dtype=np.float64)

    def answer(self, labels: Labels, value: Any) -> Answer:
        return None, float(labels.in_units(value)), None

    def no_answer(self) -> Answer:
        return None, math.nan, None

    def relevance(self, labels: Labels, answer: Answer) -> float:  # noqa: ARG002
        return answer[1]

    def answer_columns(self, labels: Labels) -> list[tuple[str, pa.DataType]]:  # noqa: ARG002
        return [("score", pa.float64())]

    def moves(self, labels: Labels, before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
        """Absolute difference as a fraction of the range."""
        return np.asarray(np.abs(before - after) / (labels.high - labels.low))

    def groups(self, labels: Labels, targets: Targets) -> NDArray[np.int64]:
        parts = FIFTHS * (labels.in_units(np.asarray(targets, dtype=np.float64)) - labels.low)
        return np.clip(parts / (labels.high - labels.low), 0, FIFTHS - 1).astype(np.int64)

    def differ(self, labels: Labels, one: Targets, two: Targets) -> NDArray[np.bool_]:
        before, after = (labels.in_units(np.asarray(values, dtype=np.float64)) for values in (one, two))
        return self.moves(labels, before, after) > APART

    def cross_predict(
        self,
        labels: Labels,  # noqa: ARG002
        targets: Targets,
        features: noise.Features,
        folds: noise.Folds,
    ) -> Predictions:
        return noise.numbers(features, np.asarray(targets, dtype=np.float64), folds)

    def suspects(self, targets: Targets, predictions: Predictions) -> noise.Suspects:
        return noise.suspicious_numbers(np.asarray(targets, dtype=np.float64), predictions)

    @property
    def cell_type(self) -> pa.DataType:
        return pa.float64()

    def cells(self, values: Targets, names: Sequence[str]) -> NDArray[np.float64]:  # noqa: ARG002
        return np.asarray(values, dtype=np.float64)

    def read_cells(self, cells: Sequence[Any], names: Sequence[str]) -> NDArray[np.float64]:  # noqa: ARG002
        return np.array(cells, dtype=np.float64)

    def read_predictions(self, columns: Mapping[str, pa.ChunkedArray], names: Sequence[str]) -> Predictions:  # noqa: ARG002
        numbers: Predictions = columns["prediction"].to_numpy()
        return numbers

    def shown(self, names: Sequence[str], answer: Any) -> str:  # noqa: ARG002
        return f"{float(answer):.2f}"

    def reading_code(self, labels: Labels) -> list[str]:  # noqa: ARG002
        return ["print(logits[:, 0].tolist())"]

    def describe_logits(self, labels: Labels) -> str:  # noqa: ARG002
        return "`logits` has one number for each row, in the units of the labels."
