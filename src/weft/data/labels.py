"""Label columns as numbers, and numbers as labels again."""

import ast
import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from torch import Tensor

from weft.data.problems import Problems
from weft.data.tokens import TokenizedFile
from weft.foundation.errors import UserError
from weft.foundation.values import Rows

FLAGS = {"0": False, "1": True, "false": False, "true": True, "no": False, "yes": True}
BETWEEN = "\x1f"

Kind = Literal["classification", "ordinal", "multilabel", "regression"]
Targets = NDArray[np.float64] | NDArray[np.int64]
Values = TypeVar("Values", float, NDArray[np.float64], Tensor)


@dataclass(frozen=True)
class Labels:
    """What a task's labels are. Fixed before training and saved with the model."""

    kind: Kind
    names: tuple[str, ...] = ()
    """class names, in the order of the class numbers; empty for a regression"""
    low: float = 0.0
    high: float = 1.0
    """range of a regression's labels, in their own units"""
    bounded: bool = True
    """whether a label outside the range is an error: it is if the range was declared, not if it was only seen"""
    scaled: bool = False
    """whether a regression is trained on labels brought to 0..1"""
    numbered: bool = False
    """whether a class may also be given by its number: if names were declared and none of them is a number itself"""
    positive: str | None = field(default=None, compare=False)
    """the one of two classes that precision, recall and F1 are about; it changes no answer of a model"""

    @property
    def is_numeric(self) -> bool:
        return self.kind == "regression"

    def fit(self, kind: Kind) -> bool:
        """Whether these can be the labels of a task of this kind; those of a stranger's model may be anything."""
        if self.kind != kind:
            return False
        if self.is_numeric:
            return not self.names and math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high
        return len(self.names) > 1 and len(set(self.names)) == len(self.names)

    def target(self, label: str) -> float | list[float] | None:
        """A label as training wants it, or None if it is not one."""
        if self.kind == "multilabel":
            numbers = [self._class_number(name) for name in divide(label)]
            if None in numbers:
                return None
            return [float(i in numbers) for i in range(len(self.names))]
        if self.is_numeric:
            value = as_float(label.strip())
            if value is None or (self.bounded and not self.low <= value <= self.high):
                return None
            return self.from_units(value)
        return self._class_number(canonical(label))

    def _class_number(self, text: str) -> float | None:
        if text in self.names:
            return float(self.names.index(text))
        if self.numbered and text.isdecimal() and int(text) < len(self.names):
            return float(text)
        return None

    def in_units(self, values: Values) -> Values:
        """Predicted or target numbers of a regression in the label's own units."""
        return self.low + values * (self.high - self.low) if self.scaled else values

    def from_units(self, values: Values) -> Values:
        """Numbers as a regression is trained on them: the inverse of `in_units`."""
        return (values - self.low) / (self.high - self.low) if self.scaled else values

    def with_positive(self, name: str, key: str) -> "Labels":
        """The same labels with a positive class; `key` is what messages call it."""
        if self.kind not in ("classification", "ordinal") or len(self.names) != 2:
            found = f"{len(self.names)} classes" if self.names and self.kind != "multilabel" else f"{self.kind} labels"
            raise UserError(f"{key}: names the positive one of two classes, but the task has {found}; leave it out")
        if name not in self.names:
            raise UserError(f"{key}: found {name!r}, expected {' or '.join(self.names)}")
        return replace(self, positive=name)

    @property
    def expected(self) -> str:
        """for messages: what a label may be"""
        if self.is_numeric:
            return f"a number from {self.low:g} to {self.high:g}" if self.bounded else "a number"
        shown = ", ".join(self.names[:8]) + (", ..." if len(self.names) > 8 else "")
        return f"{'any' if self.kind == 'multilabel' else 'one'} of {shown}"


def canonical(label: str) -> str:
    """Labels that mean the same are spelt the same: `1.0` is `1`, and blanks around do not count."""
    text = label.strip()
    value = as_float(text)
    if value is not None and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return text


def divide(label: str) -> list[str]:
    """The several labels of a multilabel row: a list as JSON or Python writes it, or divided by , ; or |.

    An empty text is none.
    """
    if label.lstrip().startswith("["):
        for read in (json.loads, ast.literal_eval):
            with suppress(ValueError, SyntaxError, MemoryError, RecursionError):  # a label that starts with a bracket
                return [canonical(str(name)) for name in read(label.strip())]
    return [canonical(part) for part in re.split(r"[,;|]", label) if part.strip()]


class LabelColumn:
    """A file's label column under a recipe's label map."""

    def __init__(self, file: TokenizedFile, column: str, label_map: Mapping[str, str] | None) -> None:
        self.file = file
        self.column = column
        self.map = {canonical(old): canonical(new) for old, new in (label_map or {}).items()}

    def cells(self) -> pa.ChunkedArray:
        """What stands in each row."""
        return self.file.strings(self.column)

    def target(self, text: str, labels: Labels) -> float | list[float] | None:
        """What a cell means to training, or None if it is no label."""
        return labels.target(self.mapped(text, labels.kind))

    def complaint(self, text: str, labels: Labels) -> str:
        """What is wrong with a cell that is no label."""
        shown = f"the label {text!r}" if text.strip() else "no label"
        return f"column {self.column!r} has {shown}, expected {labels.expected}"

    def names(self, kind: Kind) -> list[str]:
        """Every label that occurs: numbers in their order, then names in theirs."""
        parts = [divide(text) if kind == "multilabel" else [canonical(text)] for text in self.distinct(kind)]
        seen = {name for names in parts for name in names} - {""}
        return sorted(seen, key=lambda name: (as_float(name) is None, as_float(name) or 0.0, name))

    def require_names(self, declared: Sequence[str]) -> None:
        """Labels that a recipe declares need not occur."""

    def distinct(self, kind: Kind) -> list[str]:
        """Every different cell, mapped."""
        found = self.cells().unique().to_pylist()
        return [self.mapped(str(text), kind) for text in found]

    def mapped(self, text: str, kind: Kind) -> str:
        """A label under its other name; of a multilabel cell, each of its labels."""
        if kind == "multilabel" and self.map:
            return json.dumps([self.map.get(part, part) for part in divide(text)])
        return self.map.get(canonical(text), text)

    def targets(self, labels: Labels, *, skip_bad_rows: bool) -> tuple[Targets, Rows]:
        """[n] or [n, labels] targets and the rows they belong to; labels that cannot be read stop, or are left out."""
        encoded = self.cells().dictionary_encode().unify_dictionaries().combine_chunks()
        texts = encoded.dictionary.to_pylist()
        found = [self.target(text, labels) for text in texts]
        codes = encoded.indices.to_numpy()
        usable = np.array([target is not None for target in found])[codes]
        if not usable.all() and not skip_bad_rows:
            self.problems(labels).stop()
        rows = np.flatnonzero(usable)
        if not len(rows):
            raise UserError(f"{self.file.source}: no row has a usable label in column {self.column!r}")
        shape: Any = [0.0] * len(labels.names) if labels.kind == "multilabel" else 0.0
        table = np.array([shape if target is None else target for target in found], dtype=np.float64)
        values: NDArray[np.float64] = table[codes[rows]]
        return (values if labels.kind in ("regression", "multilabel") else values.astype(np.int64)), rows

    def problems(self, labels: Labels) -> Problems:
        """Every row whose label is not one."""
        found = Problems(self.file.source)
        good: dict[str, bool] = {}
        for row, text in enumerate(text for chunk in self.cells().chunks for text in chunk.to_pylist()):
            if text not in good:
                good[text] = self.target(text, labels) is not None
            if not good[text]:
                found.add(self.file.line(row), "bad label", self.complaint(text, labels))
        return found


class FlagColumns(LabelColumn):
    """Columns of 0 and 1, one for each label of a multilabel task. A row's cell is all of them, one after the other."""

    def __init__(self, file: TokenizedFile, columns: tuple[str, ...], label_map: Mapping[str, str] | None) -> None:
        super().__init__(file, ", ".join(columns), label_map)
        self.columns = columns
        self.meanings = [self.map.get(canonical(name), canonical(name)) for name in columns]
        """each column's label; a label map renames columns, or makes one label of several"""

    def cells(self) -> pa.ChunkedArray:
        import pyarrow.compute as pc  # takes long to import, and a trained model does without

        return pc.binary_join_element_wise(*(self.file.strings(name) for name in self.columns), BETWEEN)

    def names(self, kind: Kind) -> list[str]:  # noqa: ARG002
        """The labels are the columns, in their order, whatever stands in them."""
        return list(dict.fromkeys(self.meanings))

    def require_names(self, declared: Sequence[str]) -> None:
        if set(declared) != set(self.meanings):
            raise UserError(
                f"{self.file.source}: `labels` declares {', '.join(declared)}, but the label columns are "
                f"{', '.join(self.meanings)}; leave `labels` out, or rename columns with `label_map`"
            )

    def target(self, text: str, labels: Labels) -> list[float] | None:
        flags = [as_flag(cell) for _, cell in self._apart(text)]
        if None in flags:
            return None
        chosen = {name for name, flag in zip(self.meanings, flags, strict=True) if flag}
        return [float(name in chosen) for name in labels.names]

    def _apart(self, text: str) -> list[tuple[str, str]]:
        """Each column with its own cell of a row."""
        return list(zip(self.columns, text.split(BETWEEN, len(self.columns) - 1), strict=True))

    def complaint(self, text: str, labels: Labels) -> str:  # noqa: ARG002
        column, cell = next((column, cell) for column, cell in self._apart(text) if as_flag(cell) is None)
        return f"column {column!r} has {f'the label {cell!r}' if cell.strip() else 'no label'}, expected 0 or 1"


def as_flag(cell: str) -> bool | None:
    """Whether a cell of a column of 0 and 1 is on, or None if it is neither."""
    return FLAGS.get(canonical(cell).lower())


def find_labels(
    kind: Kind,
    column: LabelColumn,
    declared: Sequence[Any] | None,
    bounds: tuple[float, float] | None,
    scaled: bool,
) -> Labels:
    """The labels that a recipe declares, or else those seen in the train file."""
    where = f"{column.file.source}: column {column.column!r}"
    if kind == "regression":
        low, high = bounds or _seen_range(column, where)
        return Labels(kind, low=low, high=high, bounded=bounds is not None, scaled=scaled)
    if declared is not None:
        names = [canonical(str(name)) for name in declared]
        column.require_names(names)
        return Labels(kind, names=tuple(names), numbered=not any(as_float(name) is not None for name in names))
    names = column.names(kind)
    if len(names) < 2:
        raise UserError(
            f"{where} holds {len(names)} different labels ({', '.join(names) or 'none'}); "
            f"a {kind} task needs at least two"
        )
    return Labels(kind, names=tuple(names))


def _seen_range(column: LabelColumn, where: str) -> tuple[float, float]:
    values = {value for text in column.distinct("regression") if (value := as_float(text.strip())) is not None}
    if len(values) < 2:
        raise UserError(f"{where} holds {len(values)} different numbers; a regression needs two")
    return min(values), max(values)


def as_float(text: str) -> float | None:
    """A finite number, or None."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
