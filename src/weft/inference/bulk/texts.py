"""The rows of an input file: checked once, then read block by block. No more than one block is in memory."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pyarrow as pa

from weft.data.empty import OnEmpty, empty_column
from weft.data.files import Row, read_rows, require_columns
from weft.data.layout import PLAIN, Layout
from weft.data.problems import Problems
from weft.data.tables import choose_columns, input_layout, reading_note
from weft.foundation.errors import UserError
from weft.inference.bulk.kept import Keep, Types, chosen, parquet_schema, parquet_tables, table_of

Sides = list[list[str]]
"""one list of texts for each text column"""


@dataclass(frozen=True)
class Wish:
    """What a task wants of each row."""

    columns: list[str]
    """the text columns of its own files"""
    on_empty: OnEmpty
    layout: Layout = PLAIN
    """how its own files are written"""


@dataclass(frozen=True)
class Block:
    """Some rows of an input."""

    sides: dict[str, Sides]
    """the texts that each task reads"""
    kept: pa.Table | None = None
    """the columns that pass through to the output, if there are any"""

    def __len__(self) -> int:
        return len(next(iter(self.sides.values()))[0])


@dataclass(frozen=True)
class Facts:
    """What is known of an input before it is answered."""

    rows: int
    kept: pa.Schema
    """the columns that pass through"""


class BulkTexts:
    """The texts of a csv, tsv, jsonl or parquet file in the columns of some tasks."""

    def __init__(self, path: Path, wishes: Mapping[str, Wish], keep: Keep = ()) -> None:
        """`keep` are the columns that pass through; None for all."""
        if not path.is_file():
            raise UserError(f"{path}: there is no such file")
        self.path = path
        self.wishes = wishes
        self.keep = keep
        self._is_parquet = path.suffix == ".parquet"
        self._stamp = self._look()

    def look(self) -> Facts:
        """Read all of it. Whatever is wrong with any row is said now, before anything is computed."""
        types, rows = Types(), 0
        kept: list[str] | None = None
        for row in self._rows():
            rows += 1
            if not self._is_parquet:
                kept = chosen(self.keep, self.path, list(row.values)) if kept is None else kept
                types.see(row, kept)
        if self._is_parquet:
            return Facts(rows, parquet_schema(self.path, self.keep))
        return Facts(rows, types.schema())

    def blocks(self, rows: int, kept: pa.Schema | None = None) -> Iterator[Block]:
        """The file in blocks of so many rows, the last one shorter; none if it has no rows."""
        names = [] if kept is None else kept.names
        tables = parquet_tables(self.path, names, rows) if names and self._is_parquet else None
        stream = self._rows()
        columns: dict[str, list[str]] | None = None
        while block := list(islice(stream, rows)):
            columns = columns or self._columns(list(block[0].values))
            texts = {name: [row.values[name] for row in block] for own in columns.values() for name in own}
            sides = {task: [texts[name] for name in own] for task, own in columns.items()}
            if tables is not None:
                yield Block(sides, next(tables))
            else:
                yield Block(sides, table_of(block, kept) if kept is not None and names else None)

    def _rows(self) -> Iterator[Row]:
        """Rows that can be answered; if there is one that cannot, that is said at the end."""
        problems = Problems(self.path)
        strict: list[str] | None = None
        wish = self._first()
        layout = input_layout(self.path, wish.columns, wish.layout)
        for row in read_rows(self.path, problems, lambda found: _each_once(self._columns(found)), layout):
            strict = self._strict(list(row.values)) if strict is None else strict
            empty = empty_column(row.values, strict)
            if empty is None:
                yield row
            else:
                problems.add(row.line, "empty text", f"column {empty!r} is empty, expected a text (see --on-empty)")
        problems.stop()

    def note(self) -> str | None:
        """How a csv or tsv file is read, where that is not obvious."""
        wish = self._first()
        return reading_note(self.path, wish.columns, wish.layout)

    def _first(self) -> Wish:
        """A file has one layout: that of the files of the first task."""
        return next(iter(self.wishes.values()))

    def _columns(self, found: list[str]) -> dict[str, list[str]]:
        """The file's columns that each task reads."""
        columns = {task: choose_columns(found, wish.columns) for task, wish in self.wishes.items()}
        require_columns(self.path, found, _each_once(columns))
        return columns

    def _strict(self, found: list[str]) -> list[str]:
        """The columns that must not be empty."""
        columns = self._columns(found)
        return _each_once({task: columns[task] for task, wish in self.wishes.items() if wish.on_empty == "error"})

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


def _each_once(columns: Mapping[str, list[str]]) -> list[str]:
    return list(dict.fromkeys(name for own in columns.values() for name in own))
