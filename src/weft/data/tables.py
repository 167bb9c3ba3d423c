"""Tables that users hand in for prediction, and get back."""

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from weft.data.files import ENDINGS, as_text, read_rows, require_columns
from weft.data.problems import Problems
from weft.errors import UserError

STANDARD = ("text", "text2")


def read_texts(path: Path, own: list[str]) -> list[list[str]]:
    """One list for each of the columns `own`, which may also be called `text` and `text2`."""
    problems = Problems(path)
    rows = [row.values for row in read_rows(path, problems)]
    problems.stop()
    if not rows:
        return [[] for _ in own]
    standard = list(STANDARD[: len(own)])
    columns = standard if all(name in rows[0] for name in standard) else own
    require_columns(path, list(rows[0]), columns)
    return [[row[name] for row in rows] for name in columns]


def require_writable(path: Path, endings: tuple[str, ...] = ENDINGS) -> None:
    """Said before any work is done, not after."""
    if path.suffix not in endings:
        raise UserError(f"{path}: expected a name that ends in {' or '.join(endings)}")
    if not path.parent.is_dir():
        raise UserError(f"{path}: there is no folder {path.parent}")


def write_table(path: Path, rows: list[dict[str, Any]]) -> None:
    """Rows with equal keys, in the format that the file's ending names: all of them, or the file stays as it was."""
    require_writable(path)
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        _write(temporary, path.suffix, rows)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _write(path: Path, ending: str, rows: list[dict[str, Any]]) -> None:
    if ending == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
        return
    with path.open("w", encoding="utf-8", newline="") as handle:
        if ending == ".jsonl":
            handle.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            return
        rows = [
            {key: as_text(value) if isinstance(value, list) else value for key, value in row.items()} for row in rows
        ]
        delimiter = "\t" if ending == ".tsv" else ","
        writer = csv.DictWriter(handle, list(rows[0]) if rows else [], delimiter=delimiter, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
