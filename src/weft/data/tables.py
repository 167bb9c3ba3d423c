"""Input files for prediction."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from weft.data.dialect import detect
from weft.data.files import ENDINGS, read_rows, require_columns
from weft.data.layout import Layout
from weft.data.opening import is_delimited
from weft.data.problems import Problems
from weft.foundation.errors import UserError

STANDARD = ("text", "text2")
VECTOR_ENDINGS = (".npy", ".parquet")


def choose_columns(found: Sequence[str], own: Sequence[str]) -> list[str]:
    """Return the text columns: `text` and `text2` if present, or else the columns of the task's own files."""
    standard = list(STANDARD[: len(own)])
    return standard if all(name in found for name in standard) else list(own)


def input_layout(path: Path, own: list[str], layout: Layout) -> Layout:
    """Return the layout of an input file. A first line with the column names is a header in any layout."""
    if layout.header or not path.is_file() or not is_delimited(path):
        return layout
    with_header = replace(layout, header=True, columns=())
    try:
        found = detect(path, with_header).names
    except UserError:  # the first line is not a header
        return layout
    return with_header if all(name in found for name in choose_columns(found, own)) else layout


def reading_note(path: Path, own: list[str], layout: Layout) -> str | None:
    """Describe how a csv or tsv file is read, or return None if it is obvious."""
    if not is_delimited(path):
        return None
    dialect = detect(path, input_layout(path, own, layout))
    return None if dialect.is_obvious else f"{path}: {dialect}"


def read_texts(path: Path, own: list[str]) -> list[list[str]]:
    """Return the texts of a small file, one list per column."""
    problems = Problems(path)
    rows = [row.values for row in read_rows(path, problems, lambda found: _required(path, found, own))]
    problems.stop()
    return [[row[name] for row in rows] for name in (_required(path, list(rows[0]), own) if rows else own)]


def _required(path: Path, found: list[str], own: list[str]) -> list[str]:
    columns = choose_columns(found, own)
    require_columns(path, found, columns)
    return columns


def require_writable(path: Path, endings: tuple[str, ...] = ENDINGS) -> None:
    """Raise if an output path cannot be used, before any work is done."""
    if path.suffix not in endings:
        raise UserError(f"{path}: expected a name that ends in {' or '.join(endings)}")
    if not path.parent.is_dir():
        raise UserError(f"{path}: there is no folder {path.parent}")
