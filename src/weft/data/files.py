"""Reading of data files row by row, with the line number on which each row starts."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from weft.data.bounds import BoundedText, parquet_rows, within_memory
from weft.data.cells import as_text
from weft.data.conll import conll_texts
from weft.data.dialect import CONVERT, Dialect, detect, shown, text_encoding
from weft.data.frames import Frame, Source
from weft.data.layout import PLAIN, Layout
from weft.data.opening import ending, explaining, is_conll, is_delimited
from weft.data.problems import Problems
from weft.data.records import Record, Records, loosely_quoted
from weft.foundation.errors import UserError

ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet")
LONGEST = 1_000_000
"""Maximum number of characters in one text. No body reads a hundredth of that: a longer text is an error."""
SURROGATE = re.compile("[\ud800-\udfff]")


class Row(NamedTuple):
    line: int
    """Line number in the file, from 1. For parquet: row number from 1. For a table in memory: row number from 0."""
    values: dict[str, str]
    typed: dict[str, Any] | None = None
    """The values with their JSON types, for jsonl."""


Choice = Callable[[list[str]], list[str]]
"""Function that selects the columns to read from those of a file."""


def read_rows(
    source: Source, problems: Problems, choice: Choice | None = None, layout: Layout = PLAIN
) -> Iterator[Row]:
    """Yield the rows of a csv, tsv, jsonl, conll or parquet file, or of a table in memory.

    All but parquet may be gzipped.

    Invalid rows are added to `problems`. For a parquet file, which is columnar, only the columns of `choice` are read.
    """
    if isinstance(source, Frame):
        yield from _usable((Row(number, cells) for number, cells in enumerate(source.rows())), problems, layout)
        return
    if not source.is_file():
        raise UserError(f"{source}: there is no such file")
    with explaining(source):
        yield from _usable(within_memory(source, _rows(source, problems, choice, layout)), problems, layout)


def _usable(rows: Iterator[Row], problems: Problems, layout: Layout) -> Iterator[Row]:
    for row in rows:
        wrong = _unusable(row, layout.encoding)
        if wrong is None:
            yield row
        else:
            problems.add(row.line, *wrong)


def _rows(path: Path, problems: Problems, choice: Choice | None, layout: Layout) -> Iterator[Row]:
    if ending(path) == ".parquet":
        yield from _parquet(path, choice)
    elif is_delimited(path):
        dialect = detect(path, layout)
        with BoundedText(path, dialect.encoding) as handle:
            yield from _delimited(handle, dialect, problems)
    else:
        with BoundedText(path, text_encoding(path, layout.encoding)) as handle:
            if is_conll(path):
                yield from (Row(line, columns) for line, columns in conll_texts(handle, problems))
            else:
                yield from _json_lines(handle, path, problems)


def _unusable(row: Row, encoding: str) -> tuple[str, str] | None:
    """Return the problem with the characters of a row as (kind, detail), or None."""
    for name, text in row.values.items():
        if "\0" in text:
            return "NUL byte", f"column {name!r} holds a NUL byte; remove it, for instance with `tr -d '\\0'`"
        if len(text) > LONGEST:
            found = f"column {name!r} is {len(text):,} characters long, more than {LONGEST:,}"
            return "too long", f"{found}; is a quote or a line break missing?"
        if not text.isascii() and (odd := SURROGATE.search(text)):
            code = ord(odd[0])
            found = f"the byte {code - 0xDC00:#04x}" if 0xDC80 <= code <= 0xDCFF else f"half a character (U+{code:04X})"
            return "not UTF-8", f"column {name!r} holds {found}, which is not {shown(encoding)}; {CONVERT}"
    return None


def _delimited(handle: IO[str], dialect: Dialect, problems: Problems) -> Iterator[Row]:
    """Yield the rows of a csv or tsv file, read with its dialect."""
    records = Records(handle, dialect.delimiter)
    width = len(dialect.names)
    line = 1
    if dialect.header:
        handle.readline()
        line = 2
    while (record := records.read()) is not None:
        found = record.fields(dialect.ways, width) or _loosely(record, dialect, width)
        fields, used = found or ([], 1)
        if fields:
            if not record.is_blank:
                yield Row(line, dict(zip(dialect.names, fields, strict=True)))
        elif not record.is_blank:
            problems.add(line, *_unreadable(record, dialect))
        records.put_back(record.taken[used:])
        line += used


def _loosely(record: Record, dialect: Dialect, width: int) -> tuple[list[str], int] | None:
    """Split a line with malformed quotes, as a last resort. Not used if the recipe disables quoting."""
    if "csv" not in dialect.ways or record.quoted is not None:
        return None
    fields = loosely_quoted(record.taken[0], dialect.delimiter, width)
    return None if fields is None else (fields, 1)


def _unreadable(record: Record, dialect: Dialect) -> tuple[str, str]:
    """Return the problem with a record as (kind, detail)."""
    if dialect.ways[0] == "csv" and record.quoted is None:
        return "unbalanced quotes", "a quote opens here and is not closed properly"
    fields = record.plain if dialect.ways[0] == "none" or record.quoted is None else record.quoted
    expected = "the header has" if dialect.header else "the first row has"
    return "wrong number of fields", f"has {len(fields)} fields, {expected} {len(dialect.names)}"


def _json_lines(handle: IO[str], path: Path, problems: Problems) -> Iterator[Row]:
    """Yield the rows of a file with one JSON object per line. Missing keys become empty strings."""
    columns: list[str] = []
    for line, text in enumerate(handle, 1):
        if not text.strip():
            continue
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            problems.add(line, "not JSON", f"is not JSON ({error})")
            continue
        if not isinstance(values, dict):
            problems.add(line, "not an object", f"is a JSON {type(values).__name__}, expected an object")
            continue
        columns = columns or list(values)
        unknown = [key for key in values if key not in columns]
        if unknown:
            problems.add(line, "unknown key", f"has the key {unknown[0]!r}, which the first row has not")
            continue
        yield Row(line, {key: as_text(values.get(key)) for key in columns}, values)
    if not columns and not problems.counts:
        raise UserError(f"{path}: is empty; expected one JSON object a line")


def _parquet(path: Path, choice: Choice | None) -> Iterator[Row]:
    for number, values in enumerate(parquet_rows(path, choice), 1):
        yield Row(number, {key: as_text(value) for key, value in values.items()})


def require_columns(source: Source, found: list[str], wanted: list[str]) -> None:
    """Raise if a column that the recipe names is missing."""
    for name in wanted:
        if name not in found:
            shown = ", ".join(repr(column) for column in found)
            if isinstance(source, Frame):
                raise UserError(f"{source}: there is no column {name!r}; the columns are {shown}")
            sentence = any(len(column.split()) > 3 for column in found)
            hint = "; if the first line is a row, say `header = false` or write a header" if sentence else ""
            raise UserError(f"{source}:1: there is no column {name!r}; the columns are {shown}{hint}")
