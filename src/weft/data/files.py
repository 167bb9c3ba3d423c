"""Reads a file of rows, one at a time, with the line that each row starts on."""

import csv
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa

from weft.data.bounds import LINE, BoundedText, parquet_rows, within_memory
from weft.data.problems import Problems
from weft.errors import UserError

csv.field_size_limit(1 << 30)
DELIMITERS = "\t,;"
ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet")
LONGEST = 1_000_000
"""characters in one text: no body reads a hundredth of that, so more is a file gone wrong"""
SURROGATE = re.compile("[\ud800-\udfff]")
CONVERT = "convert the file, for instance with `iconv -f latin1 -t utf-8`"


class Row(NamedTuple):
    line: int
    """line in the file, from 1; for parquet the number of the row"""
    values: dict[str, str]


Choice = Callable[[list[str]], list[str]]
"""which of the columns that a file has somebody wants"""


def read_rows(path: Path, problems: Problems, choice: Choice | None = None) -> Iterator[Row]:
    """Rows of a csv, tsv, jsonl or parquet file, the first three also gzipped; what is not a row goes to `problems`.

    Of a parquet file, whose columns lie apart, only those of `choice` are read.
    """
    if not path.is_file():
        raise UserError(f"{path}: there is no such file")
    ending = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    try:
        for row in within_memory(path, _rows(path, ending, problems, choice)):
            wrong = _unusable(row)
            if wrong is None:
                yield row
            else:
                problems.add(row.line, *wrong)
    except (csv.Error, EOFError, zlib.error, gzip.BadGzipFile, pa.ArrowException, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read as {ending.removeprefix('.') or 'a table'} ({error})") from None


def _rows(path: Path, ending: str, problems: Problems, choice: Choice | None) -> Iterator[Row]:
    if ending == ".parquet":
        yield from _parquet(path, choice)
        return
    with BoundedText(path, "utf-8-sig") as handle:
        yield from (_json_lines if ending == ".jsonl" else _delimited)(handle, path, problems)


def _unusable(row: Row) -> tuple[str, str] | None:
    """What is wrong with the characters of a row: (kind, detail), or None."""
    for name, text in row.values.items():
        if "\0" in text:
            return "NUL byte", f"column {name!r} holds a NUL byte; remove it, for instance with `tr -d '\\0'`"
        if len(text) > LONGEST:
            found = f"column {name!r} is {len(text):,} characters long, more than {LONGEST:,}"
            return "too long", f"{found}; is a quote or a line break missing?"
        if not text.isascii() and (odd := SURROGATE.search(text)):
            code = ord(odd[0])
            found = f"the byte {code - 0xDC00:#04x}" if 0xDC80 <= code <= 0xDCFF else f"half a character (U+{code:04X})"
            return "not UTF-8", f"column {name!r} holds {found}, which is not UTF-8; {CONVERT}"
    return None


def _delimited(handle: IO[str], path: Path, problems: Problems) -> Iterator[Row]:
    """csv and tsv; whatever the ending says, the header shows what divides the fields."""
    header_line = handle.readline()
    if not header_line.strip():
        raise UserError(f"{path}: is empty; expected a header line and rows")
    if "\0" in header_line or SURROGATE.search(header_line):
        raise UserError(f"{path}:1: the header is not UTF-8; {CONVERT}")
    delimiter = max(DELIMITERS, key=header_line.count)
    header = next(csv.reader([header_line], delimiter=delimiter))
    twice = {name for name in header if header.count(name) > 1}
    if twice:
        raise UserError(f"{path}:1: column {sorted(twice)[0]!r} stands twice in the header")
    lines = _Lines(handle, path)
    line = 2
    for fields in csv.reader(lines, delimiter=delimiter):
        record = lines.take()
        if (len(record) > 1 or lines.ended) and not _well_quoted(record, delimiter):
            through = f", and swallows the lines to {line + len(record) - 1}" if len(record) > 1 else ""
            problems.add(line, "unbalanced quotes", f"a quote opens here and is not closed properly{through}")
        elif len(fields) == len(header):
            yield Row(line, dict(zip(header, fields, strict=True)))
        elif fields:
            found = f"has {len(fields)} fields, the header has {len(header)}"
            problems.add(line, "wrong number of fields", found)
        line += len(record)


class _Lines:
    """Lines of a file, remembering which of them went into the last record."""

    def __init__(self, handle: IO[str], path: Path) -> None:
        self.handle = handle
        self.path = path
        self.taken: list[str] = []
        self.size = 0
        self.ended = False
        """whether the record asked for more than there is"""

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        line = self.handle.readline()
        self.size += len(line)
        if self.size > LINE:
            raise UserError(f"{self.path}: a quote is not closed within {LINE:,} characters; close it")
        if not line:
            self.ended = True
            raise StopIteration
        self.taken.append(line)
        return line

    def take(self) -> list[str]:
        taken, self.taken, self.size = self.taken, [], 0
        return taken


def _well_quoted(record: list[str], delimiter: str) -> bool:
    """Whether every quote that opens a field also closes it. One line with odd quotes can be read; several cannot."""
    try:
        list(csv.reader(record, delimiter=delimiter, strict=True))
    except csv.Error:
        return False
    return True


def _json_lines(handle: IO[str], path: Path, problems: Problems) -> Iterator[Row]:
    """One JSON object a line; a key that only some rows have is empty in the others."""
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
        yield Row(line, {key: as_text(values.get(key)) for key in columns})
    if not columns and not problems.counts:
        raise UserError(f"{path}: is empty; expected one JSON object a line")


def _parquet(path: Path, choice: Choice | None) -> Iterator[Row]:
    for number, values in enumerate(parquet_rows(path, choice), 1):
        yield Row(number, {key: as_text(value) for key, value in values.items()})


def as_text(value: Any) -> str:
    """A typed value as a csv file would hold it; lists and objects stay JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def require_columns(path: Path, found: list[str], wanted: list[str]) -> None:
    """A column that a recipe names must be there."""
    for name in wanted:
        if name not in found:
            shown = ", ".join(repr(column) for column in found)
            raise UserError(f"{path}:1: there is no column {name!r}; the columns are {shown}")
