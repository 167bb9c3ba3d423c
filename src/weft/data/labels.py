"""Conversion of label columns to numeric targets."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from weft.data.problems import Problems
from weft.data.splits import first_equal, text_keys
from weft.data.tokens import TokenizedFile
from weft.foundation.errors import UserError
from weft.foundation.values import Rows
from weft.kinds import KINDS
from weft.kinds.base import Kind, Target
from weft.kinds.cells import as_flag, as_float, canonical
from weft.kinds.labels import Labels
from weft.kinds.truth import Targets

BETWEEN = "\x1f"
OnBlank = Literal["skip", "error"] | None
"""skip: a blank cell is not asked about; error: it is not a valid label; None: skip, unless it is a valid label."""


class LabelColumn:
    """The label column of a file, with the label map of the recipe applied."""

    def __init__(
        self, file: TokenizedFile, column: str, label_map: Mapping[str, str] | None, on_blank: OnBlank = None
    ) -> None:
        self.file = file
        self.column = column
        self.on_blank = on_blank
        self.map = {canonical(old): canonical(new) for old, new in (label_map or {}).items()}

    @property
    def where(self) -> str:
        """File and column, for messages."""
        return f"{self.file.source}: column {self.column!r}"

    def cells(self) -> pa.ChunkedArray:
        """Return the label cell of each row."""
        return self.file.strings(self.column)

    def target(self, text: str, labels: Labels) -> Target | None:
        """Return the training target of a cell, or None if it is not a valid label."""
        return labels.kind.target(labels.kind.mapped(text, self.map), labels)

    def is_blank(self, text: str) -> bool:
        """Return whether a cell is empty. A label map can make it so: `{ "n/a" = "" }`."""
        return not self.map.get(canonical(text), text).strip()

    def is_not_asked(self, text: str, labels: Labels) -> bool:
        """Return whether a blank cell means that the task does not ask about the row."""
        if self.on_blank == "error" or not self.is_blank(text):
            return False
        return self.on_blank == "skip" or self.target(text, labels) is None

    def is_label(self, text: str, labels: Labels) -> bool:
        """Return whether a cell is a valid label."""
        return self.target(text, labels) is not None and not (self.on_blank is not None and self.is_blank(text))

    def complaint(self, text: str, labels: Labels) -> str:
        """Return the error message for a cell that is not a valid label."""
        shown = f"the label {text!r}" if text.strip() else "no label"
        return f"column {self.column!r} has {shown}, expected {labels.kind.expected(labels)}"

    def names(self, kind: Kind) -> list[str]:
        """Return all labels that occur: numbers in numeric order, then names in alphabetical order."""
        seen = {name for text in self.distinct(kind) for name in kind.parts(text)} - {""}
        return sorted(seen, key=lambda name: (as_float(name) is None, as_float(name) or 0.0, name))

    def require_names(self, declared: Sequence[str]) -> None:
        """Accept any declared labels: they need not occur in the file."""

    def distinct(self, kind: Kind) -> list[str]:
        """Return the distinct cells, with the label map applied."""
        found = self.cells().unique().to_pylist()
        return [kind.mapped(str(text), self.map) for text in found]

    def targets(self, labels: Labels, *, skip_bad_rows: bool) -> tuple[Targets, Rows, int]:
        """Return [n] or [n, labels] targets, their rows and the number of rows that are not asked about.

        Invalid labels raise an error or are skipped. A blank label that `on_blank` rejects always raises an error.
        """
        encoded = self.cells().dictionary_encode().unify_dictionaries().combine_chunks()
        texts = encoded.dictionary.to_pylist()
        found = [self.target(text, labels) if self.is_label(text, labels) else None for text in texts]
        codes = encoded.indices.to_numpy()
        usable = np.array([target is not None for target in found])[codes]
        not_asked = np.array([self.is_not_asked(text, labels) for text in texts])[codes]
        rejected = self.on_blank == "error" and any(self.is_blank(text) for text in texts)
        if rejected or not (skip_bad_rows or (usable | not_asked).all()):
            self.problems(labels).stop()
        rows = np.flatnonzero(usable)
        if not len(rows):
            raise UserError(f"{self.file.source}: no row has a usable label in column {self.column!r}")
        blank = labels.kind.blank(labels)
        table = np.array([blank if target is None else target for target in found], dtype=labels.kind.target_type)
        targets: Targets = table[codes[rows]]
        return targets, rows, int(not_asked.sum())

    def problems(self, labels: Labels) -> Problems:
        """Return the problems of all rows with an invalid label."""
        found = Problems(self.file.source)
        good: dict[str, bool] = {}
        for row, text in enumerate(text for chunk in self.cells().chunks for text in chunk.to_pylist()):
            if text not in good:
                good[text] = self.is_label(text, labels) or self.is_not_asked(text, labels)
            if not good[text]:
                found.add(self.file.line(row), "bad label", self.complaint(text, labels))
        return found


class FlagColumns(LabelColumn):
    """Columns of 0 and 1, one per label of a multilabel task. The cell of a row joins the cells of all columns."""

    def __init__(
        self,
        file: TokenizedFile,
        columns: tuple[str, ...],
        label_map: Mapping[str, str] | None,
        on_blank: OnBlank = None,
    ) -> None:
        super().__init__(file, ", ".join(columns), label_map, on_blank)
        self.columns = columns
        self.meanings = [self.map.get(canonical(name), canonical(name)) for name in columns]
        """Label of each column. A label map renames columns or merges several into one label."""

    def cells(self) -> pa.ChunkedArray:
        import pyarrow.compute as pc  # slow to import, and not needed by a trained model

        return pc.binary_join_element_wise(*(self.file.strings(name) for name in self.columns), BETWEEN)

    def names(self, kind: Kind) -> list[str]:  # noqa: ARG002
        """Return the labels of the columns in column order, independent of the cells."""
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

    def is_blank(self, text: str) -> bool:
        """Return whether all columns are empty. A row with only some empty columns is a bad row."""
        return not text.replace(BETWEEN, "").strip()

    def _apart(self, text: str) -> list[tuple[str, str]]:
        """Return (column, cell) pairs of a row."""
        return list(zip(self.columns, text.split(BETWEEN, len(self.columns) - 1), strict=True))

    def complaint(self, text: str, labels: Labels) -> str:  # noqa: ARG002
        column, cell = next((column, cell) for column, cell in self._apart(text) if as_flag(cell) is None)
        return f"column {column!r} has {f'the label {cell!r}' if cell.strip() else 'no label'}, expected 0 or 1"


class TextNumbers(LabelColumn):
    """The label column of rows without labels: which of their texts are equal.

    The cell of a row is one number per text, such as `0 7`. Equal texts have equal numbers in all columns, ignoring
    case and whitespace.
    """

    def __init__(self, file: TokenizedFile) -> None:
        super().__init__(file, ", ".join(file.text_columns), None)

    def cells(self) -> pa.ChunkedArray:
        columns = self.file.text_columns
        numbers = first_equal(text_keys(chain.from_iterable(self.file.stream(name) for name in columns)))
        rows = numbers.reshape(len(columns), -1).T
        return pa.chunked_array([pa.array([" ".join(map(str, row)) for row in rows.tolist()], pa.string())])


def find_labels(
    kind: str,
    column: LabelColumn,
    declared: Sequence[Any] | None,
    bounds: tuple[float, float] | None,
    scaled: bool,
) -> Labels:
    """Return the labels that the recipe declares, or else those of the train file."""
    return KINDS[kind].find_labels(column, declared, bounds, scaled=scaled)
