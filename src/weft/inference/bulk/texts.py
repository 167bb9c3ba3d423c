"""Rows of an input file: validated once, then read in blocks. At most one block is in memory."""

import hashlib
from collections.abc import Collection, Iterator, Mapping
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
from weft.inference.bulk.repeats import ShardRepeats, TextUnit

Sides = list[list[str]]
"""one list of texts per text column"""


@dataclass(frozen=True)
class Wish:
    """Input that a task reads from each row."""

    columns: list[str]
    """text columns of the task's data files"""
    on_empty: OnEmpty
    layout: Layout = PLAIN
    """layout of the task's data files"""
    joint: bool = False
    """whether the texts of a row are one sequence, as in a cross reading"""


@dataclass(frozen=True)
class Block:
    """Consecutive rows of an input file."""

    sides: dict[str, Sides]
    """texts that each task reads"""
    kept: pa.Table | None = None
    """columns that are copied to the output, if any"""

    def __len__(self) -> int:
        return len(next(iter(self.sides.values()))[0])


@dataclass(frozen=True)
class Facts:
    """Facts about an input file, collected before inference."""

    rows: int
    kept: pa.Schema
    """columns that are copied to the output"""
    repeats: tuple[int, ...] = ()
    """rows whose texts also occur in other shards; all such texts, each at least once"""


class BulkTexts:
    """Reads the tasks' text columns from a CSV, TSV, JSONL or parquet file."""

    def __init__(self, path: Path, wishes: Mapping[str, Wish], keep: Keep = ()) -> None:
        """`keep` are the columns that are copied to the output; None for all columns."""
        if not path.is_file():
            raise UserError(f"{path}: there is no such file")
        self.path = path
        self.wishes = wishes
        self.keep = keep
        self._is_parquet = path.suffix == ".parquet"
        self._stamp = self._look()

    def look(self, shard_rows: int | None = None) -> Facts:
        """Read and validate the whole file. Errors in any row are reported here, before inference starts.

        With `shard_rows`, find the rows whose texts occur in several shards.
        """
        types, rows = Types(), 0
        kept: list[str] | None = None
        repeats: ShardRepeats | None = None
        for row in self._rows():
            rows += 1
            if shard_rows is not None:
                repeats = repeats or ShardRepeats(self._units(list(row.values)), shard_rows)
                repeats.see(row.values)
            if not self._is_parquet:
                kept = chosen(self.keep, self.path, list(row.values)) if kept is None else kept
                types.see(row, kept)
        schema = parquet_schema(self.path, self.keep) if self._is_parquet else types.schema()
        return Facts(rows, schema, repeats.rows() if repeats else ())

    def blocks(self, rows: int, kept: pa.Schema | None = None, only: Collection[int] | None = None) -> Iterator[Block]:
        """Yield the file in blocks of `rows` rows; the last block may be shorter. An empty file yields no block.

        With `only`, yield the rows with these numbers, without kept columns.
        """
        names = [] if kept is None else kept.names
        tables = parquet_tables(self.path, names, rows) if names and self._is_parquet else None
        stream = self._rows()
        if only is not None:
            numbers = frozenset(only)
            stream = (row for number, row in enumerate(stream) if number in numbers)
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
        """Yield the valid rows. Problems with other rows are reported at the end."""
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
        """Return a note on how a CSV or TSV file is read, or None if that is obvious."""
        wish = self._first()
        return reading_note(self.path, wish.columns, wish.layout)

    def _first(self) -> Wish:
        """Return the first task's wish. Its layout applies to the whole file."""
        return next(iter(self.wishes.values()))

    def _columns(self, found: list[str]) -> dict[str, list[str]]:
        """Return the columns of the file that each task reads."""
        columns = {task: choose_columns(found, wish.columns) for task, wish in self.wishes.items()}
        require_columns(self.path, found, _each_once(columns))
        return columns

    def _units(self, found: list[str]) -> list[TextUnit]:
        """Return the units of a row. Tasks with the same columns have the same units."""
        readers = dict.fromkeys(
            (tuple(columns), self.wishes[task].joint) for task, columns in self._columns(found).items()
        )
        return [
            TextUnit(number, columns)
            for number, (own, joint) in enumerate(readers)
            for columns in ([own] if joint else [(name,) for name in own])
        ]

    def _strict(self, found: list[str]) -> list[str]:
        """Return the columns that must not be empty."""
        columns = self._columns(found)
        return _each_once({task: columns[task] for task, wish in self.wishes.items() if wish.on_empty == "error"})

    def digest(self) -> str:
        """Return the SHA-256 digest of the file's bytes."""
        with self.path.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()

    def require_unchanged(self) -> None:
        """Raise UserError if the file has changed since it was opened."""
        if self._look() != self._stamp:
            raise UserError(f"{self.path}: was changed while it was read; start again when it is finished")

    def _look(self) -> tuple[int, int]:
        stat = self.path.stat()
        return stat.st_size, stat.st_mtime_ns


def _each_once(columns: Mapping[str, list[str]]) -> list[str]:
    return list(dict.fromkeys(name for own in columns.values() for name in own))
