"""Reads a file of rows, one at a time, with the line that each row starts on."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from weft.data.problems import Problems
from weft.errors import UserError

csv.field_size_limit(1 << 30)
DELIMITERS = "\t,;"


class Row(NamedTuple):
    line: int
    values: dict[str, str]


def read_rows(path: Path, problems: Problems) -> Iterator[Row]:
    """Rows of a csv or tsv file with a header; rows with another number of fields go to `problems`."""
    if not path.is_file():
        raise UserError(f"{path}: there is no such file")
    try:
        with path.open(encoding="utf-8-sig", newline="") as handle:
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
                    problems.add(
                        line,
                        "wrong number of fields",
                        f"has {len(fields)} fields, the header has {len(header)}",
                    )
                line = reader.line_num + 2
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: is not UTF-8 (byte {error.object[error.start]:#04x} cannot be read); convert it, for "
            "instance with `iconv -f latin1 -t utf-8`"
        ) from None
    except csv.Error as error:
        raise UserError(f"{path}: cannot be read as a table ({error})") from None


def require_columns(path: Path, found: list[str], wanted: list[str]) -> None:
    """A column that a recipe names must be there."""
    for name in wanted:
        if name not in found:
            shown = ", ".join(repr(column) for column in found)
            raise UserError(f"{path}:1: there is no column {name!r}; the columns are {shown}")
