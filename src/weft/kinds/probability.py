"""What all kinds have in common whose answers are probabilities: of classes, or of labels that apply or do not."""

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
"""the least probability whose logarithm is taken"""
CLOSE = 1e-6
"""how close to 0 and 1 a probability in a divergence comes: its gradient must stay finite in fp32"""
SHOWN = 8


class ProbabilityKind(Kind):
    """A model answers with a probability of each name, which a temperature can calibrate."""

    hub_task = "text-classification"

    def check_declared(self, names: Sequence[Any] | None, bounds: tuple[float, float] | None, *, scaled: bool) -> None:
        if bounds is not None or not scaled:
            raise ValueError(f"`range` and `scale` are for a regression, but the task is a {self.name}")
        if names is not None and len({canonical(str(name)) for name in names}) < max(2, len(names)):
            raise ValueError("`labels` must be at least two, each once")

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
                f"{column.where} holds {len(seen)} different labels ({', '.join(seen) or 'none'}); "
                f"a {self.name} task needs at least two"
            )
        return Labels(self, names=tuple(seen))

    def fits(self, labels: Labels) -> bool:
        return len(labels.names) > 1 and len(set(labels.names)) == len(labels.names)

    def number(self, name: str, labels: Labels) -> float | None:
        """The number of a class, or None if there is no such class."""
        if name in labels.names:
            return float(labels.names.index(name))
        if labels.numbered and name.isdecimal() and int(name) < len(labels.names):
            return float(name)
        return None

    def shown_names(self, labels: Labels) -> str:
        return ", ".join(labels.names[:SHOWN]) + (", ..." if len(labels.names) > SHOWN else "")

    def distribution(self, labels: Labels, targets: Targets) -> str:
        counts = self.count(targets, len(labels.names))
        shares = (f"{name} {count / len(targets):.0%}" for name, count in zip(labels.names, counts, strict=True))
        return f"labels {', '.join(shares)}"

    @abstractmethod
    def count(self, targets: Targets, classes: int) -> NDArray[np.int64]:
        """[classes] how many rows have each."""

    @abstractmethod
    def truth_probabilities(self, predictions: Predictions, targets: Targets) -> NDArray[np.float64]:
        """The probability of everything that is true."""

    @abstractmethod
    def confidence(self, predictions: Predictions, targets: Targets) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """[answers] the probability of each answer, and whether it is right."""

    def no_answer(self) -> Answer:
        return None, math.nan, {}

    def answer_columns(self, labels: Labels) -> list[tuple[str, pa.DataType]]:
        probabilities = [(f"p_{name}", pa.float64()) for name in labels.names]
        return [("label", self.cell_type), ("score", pa.float64()), *probabilities]

    def read_predictions(self, columns: Mapping[str, pa.ChunkedArray], names: Sequence[str]) -> Predictions:
        return np.stack([columns[f"p_{name}"].to_numpy() for name in names], axis=1)
