"""Reads a file of rows, one at a time, with the line that each row starts on."""

import csv
import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from weft.data.problems import Problems
from weft.errors import UserError

csv.field_size_limit(1 << 30)
DELIMITERS = "\t,;"
ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet")


class Row(NamedTuple):
    line: int
    """line in the file, from 1; for parquet the number of the row"""
    values: dict[str, str]


def read_rows(path: Path, problems: Problems) -> Iterator[Row]:
    """Rows of a csv, tsv, jsonl or parquet file, the first three also gzipped; what is not a row goes to `problems`."""
    if not path.is_file():
        raise UserError(f"{path}: there is no such file")
    ending = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    try:
        if ending == ".parquet":
            yield from _parquet(path)
            return
        with _open(path) as handle:
            yield from (_json_lines if ending == ".jsonl" else _delimited)(handle, path, problems)
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: is not UTF-8 (byte {error.object[error.start]:#04x} cannot be read); convert it, for "
            "instance with `iconv -f latin1 -t utf-8`"
        ) from None
    except (csv.Error, EOFError, zlib.error, gzip.BadGzipFile, pa.ArrowException) as error:
        raise UserError(f"{path}: cannot be read as {ending.removeprefix('.') or 'a table'} ({error})") from None


def _open(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _delimited(handle: IO[str], path: Path, problems: Problems) -> Iterator[Row]:
    """csv and tsv; whatever the ending says, the header shows what divides the fields."""
    header_line = handle.readline()
    if not header_line.strip():
        raise UserError(f"{path}: is empty; expected a header line and rows")
    delimiter = max(DELIMITERS, key=header_line.count)
    header = next(csv.reader([header_line], delimiter=delimiter))
    twice = {name for name in header if header.count(name) > 1}
    if twice:
        raise UserError(f"{path}:1: column {sorted(twice)[0]!r} stands twice in the header")
    reader = csv.reader(handle, delimiter=delimiter)
    line = 2
    for fields in reader:
        if len(fields) == len(header):
            yield Row(line, dict(zip(header, fields, strict=True)))
        elif fields:
            found = f"has {len(fields)} fields, the header has {len(header)}"
            problems.add(line, "wrong number of fields", found)
        line = reader.line_num + 2


def _json_lines(handle: IO[str], path: Path, problems: Problems) -> Iterator[Row]:
    """One JSON object a line; a key that only some rows have is empty in the others."""
    columns: list[str] = []
    for line, text in enumerate(handle, 1):
        if not text.strip():
            continue
        try:
            values = json.loads(text)
        except ValueError as error:
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


def _parquet(path: Path) -> Iterator[Row]:
    number = 0
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=8192):
            for values in batch.to_pylist():
                number += 1
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
