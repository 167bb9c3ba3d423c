"""The rows of an input file: checked once, then read block by block. No more than one block is in memory."""

import hashlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from weft.data.layout import PLAIN, Layout
from weft.data.problems import Problems
from weft.data.tables import reading_note, stream_texts
from weft.errors import UserError

Sides = list[list[str]]
"""one list of texts for each text column"""


class Texts:
    """The texts of a csv, tsv, jsonl or parquet file in the columns of a task."""

    def __init__(self, path: Path, columns: list[str], layout: Layout = PLAIN) -> None:
        """`layout` is that of the files the model was trained on."""
        if not path.is_file():
            raise UserError(f"{path}: there is no such file")
        self.path = path
        self.columns = columns
        self.layout = layout
        self._stamp = self._look()

    def count(self) -> int:
        """How many rows there are. Whatever is wrong with any of them is said now, before anything is computed."""
        return sum(len(block[0]) for block in self.blocks(8192))

    def blocks(self, rows: int) -> Iterator[Sides]:
        """The file in blocks of so many rows, the last one shorter; none if it has no rows."""
        problems = Problems(self.path)
        stream = stream_texts(self.path, self.columns, problems, self.layout)
        while block := list(islice(stream, rows)):
            yield [[row[side] for row in block] for side in range(len(self.columns))]
        problems.stop()

    def note(self) -> str | None:
        """How a csv or tsv file is read, where that is not obvious."""
        return reading_note(self.path, self.columns, self.layout)

    def digest(self) -> str:
        """sha256 of the file's bytes"""
        with self.path.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()

    def require_unchanged(self) -> None:
        """While it is answered a file must stay what it was when it was looked at first."""
        if self._look() != self._stamp:
            raise UserError(f"{self.path}: was changed while it was read; start again when it is finished")

    def _look(self) -> tuple[int, int]:
        stat = self.path.stat()
        return stat.st_size, stat.st_mtime_ns
