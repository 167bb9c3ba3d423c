"""Conversion of a column with the labels of words to numeric targets."""

from collections.abc import Iterator, Mapping
from typing import cast

import numpy as np

from weft.data.labels import LabelColumn, OnBlank
from weft.data.problems import Problems
from weft.data.tokens import TokenizedFile
from weft.foundation.errors import UserError
from weft.foundation.values import Rows
from weft.kinds.labels import Labels
from weft.kinds.tags import objects
from weft.kinds.truth import Targets


class WordLabels(LabelColumn):
    """A column with the labels of words. A target depends on the words of the text too."""

    def __init__(
        self, file: TokenizedFile, column: str, label_map: Mapping[str, str] | None, on_blank: OnBlank, text: str
    ) -> None:
        super().__init__(file, column, label_map, on_blank)
        self.text = text

    def _cells(self) -> Iterator[tuple[int, str]]:
        return enumerate(text for chunk in self.cells().chunks for text in chunk.to_pylist())

    def _target(self, row: int, cell: str, labels: Labels) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        table = self.file.words(self.text, row)
        assert table is not None, "the file was tokenized with its words"
        words = [(int(start), int(end)) for start, end in table[:, :2]]
        return labels.kind.word_target(labels.kind.mapped(cell, self.map), words, labels)

    def targets(self, labels: Labels, *, skip_bad_rows: bool) -> tuple[Targets, Rows, int]:
        rows, found, blank = [], [], 0
        for row, cell in self._cells():
            if self.is_blank(cell) and self.on_blank != "error":
                blank += 1
                continue
            try:
                found.append(self._target(row, cell, labels))
            except ValueError:
                if not skip_bad_rows or self.is_blank(cell):
                    self.problems(labels).stop()
            else:
                rows.append(row)
        if not rows:
            raise UserError(f"{self.file.source}: no row has usable labels in column {self.column!r}")
        return cast(Targets, objects(found)), np.array(rows, dtype=np.int64), blank

    def problems(self, labels: Labels) -> Problems:
        found = Problems(self.file.source)
        for row, cell in self._cells():
            if self.is_blank(cell) and self.on_blank != "error":
                continue
            try:
                self._target(row, cell, labels)
            except ValueError as error:
                found.add(self.file.line(row), "bad label", f"column {self.column!r} {error}")
        return found
