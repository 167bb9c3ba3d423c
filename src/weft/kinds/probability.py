"""Base class of kinds that predict probabilities: of classes, or of independent labels."""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from weft.foundation.errors import UserError
from weft.kinds.base import Answer, Kind, Seen
from weft.kinds.cells import as_float, canonical
from weft.kinds.labels import Labels
from weft.kinds.truth import Predictions, Targets

TINY = 1e-30
"""probabilities are clipped at this minimum before taking a logarithm"""
CLOSE = 1e-6
"""probabilities in a divergence are clipped to [CLOSE, 1 - CLOSE]: gradients must stay finite in fp32"""
SHOWN = 8
"""maximum number of label names in an error message"""


class ProbabilityKind(Kind):
    """A kind that predicts one probability per label name. Temperature scaling can calibrate them."""

    hub_task = "text-classification"

    def check_declared(self, names: Sequence[Any] | None, bounds: tuple[float, float] | None, *, scaled: bool) -> None:
        if bounds is not None or not scaled:
            raise ValueError(f"`range` and `scale` are for a regression, but the task is a {self.name}")
        if names is not None and len({canonical(str(name)) for name in names}) < max(2, len(names)):
            raise ValueError("`labels` must have at least two names, all different")

    def find_labels(
        self,
        column: Seen,
        names: Sequence[Any] | None,
        bounds: tuple[float, float] | None,  # noqa: ARG002
        *,
        scaled: bool,  # noqa: ARG002
    ) -> Labels:
        if names is not None:
            declared = [canonical(str(name)) for name in names]
            column.require_names(declared)
            numbered = not any(as_float(name) is not None for name in declared)
            return Labels(self, names=tuple(declared), numbered=numbered)
        seen = column.names(self)
        if len(seen) < 2:
            raise UserError(
                f"{column.where} has {len(seen)} distinct labels ({', '.join(seen) or 'none'}); "
                f"a {self.name} task needs at least two"
            )
        return Labels(self, names=tuple(seen))

    def fits(self, labels: Labels) -> bool:
        return len(labels.names) > 1 and len(set(labels.names)) == len(labels.names)

    def number(self, name: str, labels: Labels) -> float | None:
        """Return the number of a class, or None if there is no such class."""
        if name in labels.names:
            return float(labels.names.index(name))
        if labels.numbered and name.isdecimal() and int(name) < len(labels.names):
            return float(name)
        return None

    def shown_names(self, labels: Labels) -> str:
        return ", ".join(labels.names[:SHOWN]) + (", ..." if len(labels.names) > SHOWN else "")

    def distribution(self, labels: Labels, targets: Targets) -> str:
        shares = (f"{name} {count / len(targets):.0%}" for name, count in self.class_counts(labels, targets).items())
        return f"labels {', '.join(shares)}"

    def class_counts(self, labels: Labels, targets: Targets) -> dict[str, int]:
        return dict(zip(labels.names, self.count(targets, len(labels.names)).tolist(), strict=True))

    @abstractmethod
    def count(self, targets: Targets, classes: int) -> NDArray[np.int64]:
        """[classes] number of rows with each class or label."""

    @abstractmethod
    def truth_probabilities(self, predictions: Predictions, targets: Targets) -> NDArray[np.float64]:
        """Return the predicted probability of each true class, or of each label's true value."""

    @abstractmethod
    def confidence(self, predictions: Predictions, targets: Targets) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """[predictions] confidence of each prediction, and whether it is correct."""

    def no_answer(self) -> Answer:
        return None, math.nan, {}

    def answer_columns(self, labels: Labels) -> list[tuple[str, pa.DataType]]:
        probabilities = [(f"p_{name}", pa.float64()) for name in labels.names]
        return [("label", self.cell_type), ("score", pa.float64()), *probabilities]

    def read_predictions(self, columns: Mapping[str, pa.ChunkedArray], names: Sequence[str]) -> Predictions:
        return np.stack([columns[f"p_{name}"].to_numpy() for name in names], axis=1)
