"""Label columns as numbers, and numbers as labels again."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from weft.data.problems import Problems
from weft.data.tokens import TokenizedFile
from weft.errors import UserError

Kind = Literal["classification", "ordinal", "multilabel", "regression"]
Targets = NDArray[np.float64] | NDArray[np.int64]


@dataclass(frozen=True)
class Labels:
    """What a task's labels are. Fixed before training and saved with the model."""

    kind: Kind
    names: tuple[str, ...] = ()
    """class names, in the order of the class numbers; empty for a regression"""
    low: float = 0.0
    high: float = 1.0
    """range of a regression's labels, in their own units"""
    scaled: bool = False
    """whether a regression is trained on labels brought to 0..1"""

    @property
    def is_numeric(self) -> bool:
        return self.kind == "regression"

    def number(self, label: str) -> float | None:
        """A label as training wants it, or None if it is not one: by name first, then by class number."""
        text = canonical(label)
        if self.is_numeric:
            value = _as_float(text)
            if value is None or not self.low <= value <= self.high:
                return None
            return (value - self.low) / (self.high - self.low) if self.scaled else value
        if text in self.names:
            return float(self.names.index(text))
        if text.isdigit() and int(text) < len(self.names):
            return float(text)
        return None

    def in_units(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predicted or target numbers of a regression in the label's own units."""
        return self.low + values * (self.high - self.low) if self.scaled else values

    @property
    def expected(self) -> str:
        """for messages: what a label may be"""
        if self.is_numeric:
            return f"a number from {self.low:g} to {self.high:g}"
        shown = ", ".join(self.names[:8]) + (", ..." if len(self.names) > 8 else "")
        return f"one of {shown}"


def canonical(label: str) -> str:
    """Labels that mean the same are spelt the same: `1.0` is `1`, and blanks around do not count."""
    text = label.strip()
    value = _as_float(text)
    if value is not None and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return text


def find_labels(
    kind: Kind,
    file: TokenizedFile,
    column: str,
    declared: Sequence[Any] | None,
    bounds: tuple[float, float] | None,
    scaled: bool,
) -> Labels:
    """The labels that a recipe declares, or else those seen in the train file."""
    if kind == "regression":
        low, high = bounds or _seen_range(file, column)
        return Labels(kind, low=low, high=high, scaled=scaled)
    if declared is not None:
        return Labels(kind, names=tuple(canonical(str(name)) for name in declared))
    seen = {canonical(text) for text in _distinct(file, column)} - {""}
    names = sorted(seen, key=lambda name: (_as_float(name) is None, _as_float(name) or 0.0, name))
    if len(names) < 2:
        raise UserError(
            f"{file.source}: column {column!r} holds {len(names)} different labels ({', '.join(names) or 'none'}); "
            "a classification needs at least two"
        )
    return Labels(kind, names=tuple(names))


def parse_labels(labels: Labels, file: TokenizedFile, column: str) -> Targets:
    """[n] class numbers or values; a label that cannot be read stops with its lines."""
    encoded = file.strings(column).combine_chunks().dictionary_encode()
    numbers = [labels.number(text) for text in encoded.dictionary.to_pylist()]
    bad = {code for code, number in enumerate(numbers) if number is None}
    codes = encoded.indices.to_numpy()
    if bad:
        problems = Problems(file.source)
        for row in np.flatnonzero(np.isin(codes, list(bad))):
            text = encoded.dictionary[int(codes[row])].as_py()
            found = f"the label {text!r}" if text.strip() else "no label"
            problems.add(file.line(int(row)), "bad label", f"column {column!r} has {found}, expected {labels.expected}")
        problems.stop()
    table = np.array([math.nan if number is None else number for number in numbers])
    values: NDArray[np.float64] = table[codes]
    return values if labels.is_numeric else values.astype(np.int64)


def _distinct(file: TokenizedFile, column: str) -> list[str]:
    return [str(text) for text in pc.unique(file.strings(column)).to_pylist()]


def _seen_range(file: TokenizedFile, column: str) -> tuple[float, float]:
    values = [value for text in _distinct(file, column) if (value := _as_float(text)) is not None]
    if len(set(values)) < 2:
        raise UserError(
            f"{file.source}: column {column!r} holds {len(set(values))} different numbers; a regression needs two"
        )
    return min(values), max(values)


def _as_float(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
