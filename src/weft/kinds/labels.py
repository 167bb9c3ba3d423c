"""The labels of a task."""

from dataclasses import field, fields, replace
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import PlainValidator
from pydantic.dataclasses import dataclass
from pydantic_core import PydanticCustomError
from torch import Tensor

from weft.foundation.errors import UserError
from weft.kinds.base import Kind

Values = TypeVar("Values", float, NDArray[Any], Tensor)


def _kind(value: Any) -> Kind:
    """Return a kind, given itself or its name."""
    from weft.kinds import KINDS  # here, because the kinds import Labels

    if isinstance(value, Kind):
        return value
    if isinstance(value, str) and value in KINDS:
        return KINDS[value]
    *others, last = map(repr, KINDS)
    raise PydanticCustomError(
        "literal_error", "Input should be {expected}", {"expected": f"{', '.join(others)} or {last}"}
    )


@dataclass(frozen=True)
class Labels:
    """The labels of a task. Fixed before training and saved with the model."""

    kind: Annotated[Kind, PlainValidator(_kind)]
    """the kind, or its name"""
    names: tuple[str, ...] = ()
    """class names, in the order of the class numbers; empty for a regression"""
    low: float = 0.0
    """smallest label of a regression, in the label's units"""
    high: float = 1.0
    """largest label of a regression, in the label's units"""
    bounded: bool = field(default=True, compare=False)
    """whether a label outside the range is an error: true if the recipe declares the range. Labels that differ only in
    how files are read are equal"""
    scaled: bool = False
    """whether a regression is trained on labels scaled to 0..1"""
    numbered: bool = field(default=False, compare=False)
    """whether class numbers are accepted as labels: true if the recipe declares names and none of them is a number"""
    positive: str | None = field(default=None, compare=False)
    """the positive class of precision, recall and F1, for two classes; it does not affect predictions"""
    thresholds: tuple[float, ...] | None = field(default=None, compare=False)
    """decision threshold of each binary decision (two classes: of the second class), on uncalibrated probabilities"""

    @property
    def is_binary(self) -> bool:
        """whether it is a classification with two classes"""
        return self.kind.has_one_class and len(self.names) == 2

    @property
    def limits(self) -> tuple[float, float] | None:
        """the range of a regression's labels; None for other kinds"""
        return (self.low, self.high) if self.kind.has_numbers else None

    def fits(self, kind: str) -> bool:
        """Whether these are valid labels of this kind. Labels of an untrusted model can be invalid."""
        return self.kind.name == kind and self.kind.fits(self) and self._thresholds_fit()

    def _thresholds_fit(self) -> bool:
        given = self.thresholds
        return given is None or (len(given) == len(self.kind.decisions(self.names)) and all(0 < t < 1 for t in given))

    def agrees_with(self, other: "Labels") -> bool:
        """Whether predictions of both mean the same, apart from the scale of numbers, which `in_units` undoes."""
        return self.kind is other.kind and self.names == other.names

    def in_units(self, values: Values) -> Values:
        """Convert predictions or targets to the label's units; only a regression changes."""
        return self.kind.in_units(self, values)

    def from_units(self, values: Values) -> Values:
        """Convert numbers to the scale of training: the inverse of `in_units`."""
        return self.kind.from_units(self, values)

    def with_positive(self, name: str, key: str) -> "Labels":
        """Return the labels with a positive class; `key` is the recipe key for error messages."""
        if not self.is_binary:
            found = self.kind.counted(self)
            raise UserError(f"{key}: is for two classes, but the task has {found}; leave it out")
        if name not in self.names:
            raise UserError(f"{key}: found {name!r}, expected {' or '.join(self.names)}")
        return replace(self, positive=name)

    def tempered(self, temperature: float) -> "Labels":
        """Return the labels with thresholds for probabilities that temperature scaling has calibrated."""
        if self.thresholds is None:
            return self
        moved = self.kind.temper_thresholds(np.array(self.thresholds), temperature)
        return replace(self, thresholds=tuple(moved.tolist()))

    def content(self) -> dict[str, Any]:
        """Return plain values, as written to weft.json."""
        plain = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        tuned = plain.pop("thresholds")
        written = plain | {"kind": self.kind.name, "names": list(self.names)}
        return written if tuned is None else written | {"thresholds": list(tuned)}
