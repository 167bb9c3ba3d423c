"""Input columns that are copied to the output: selection, types and names."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from weft.data.cells import as_text
from weft.data.files import Row, require_columns

Keep = tuple[str, ...] | None
"""the input columns copied to the output; None for all columns"""
MARK = "input_"
"""prefix for an input column whose name conflicts with a prediction column"""
LARGEST = 2**63


def chosen(keep: Keep, path: Path, found: Sequence[str]) -> list[str]:
    """Return the columns of a file that are copied to the output."""
    if keep is None:
        return list(found)
    require_columns(path, list(found), list(keep))
    return list(keep)


def output_names(kept: Sequence[str], answers: Sequence[str]) -> dict[str, str]:
    """Map each input column to its name in the output. On a conflict, the prediction column keeps its name."""
    taken = {*kept, *answers}
    names = {}
    for name in kept:
        new = name
        while new in answers or (new != name and new in taken):
            new = MARK + new
        taken.add(new)
        names[name] = new
    return names


class Types:
    """Infers the Arrow types of a file's columns. CSV cells are text; a JSONL column with mixed types becomes text."""

    def __init__(self) -> None:
        self.seen: dict[str, set[pa.DataType]] = {}

    def see(self, row: Row, columns: Sequence[str]) -> None:
        for name in columns:
            kinds = self.seen.setdefault(name, set())
            value = row.values[name] if row.typed is None else row.typed.get(name)
            if value is not None:
                kinds.add(_type(value))

    def schema(self) -> pa.Schema:
        return pa.schema([(name, _joined(kinds)) for name, kinds in self.seen.items()])


def _type(value: Any) -> pa.DataType:
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int):
        return pa.int64() if -LARGEST <= value < LARGEST else pa.string()
    return pa.float64() if isinstance(value, float) else pa.string()


def _joined(kinds: set[pa.DataType]) -> pa.DataType:
    if kinds == {pa.int64(), pa.float64()}:
        return pa.float64()
    return next(iter(kinds)) if len(kinds) == 1 else pa.string()


def table_of(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    """Return the kept columns of rows from a CSV or JSONL file as a table."""
    return pa.table([pa.array([_cell(row, field) for row in rows], field.type) for field in schema], schema=schema)


def _cell(row: Row, field: pa.Field) -> Any:
    if row.typed is None:
        return row.values[field.name]
    value = row.typed.get(field.name)
    return value if value is None or field.type != pa.string() else as_text(value)


def parquet_tables(path: Path, columns: list[str], rows: int) -> Iterator[pa.Table]:
    """Yield columns of a parquet file unchanged, as tables of `rows` rows; the last one may be shorter."""
    waiting: list[pa.Table] = []
    with pq.ParquetFile(path, buffer_size=1 << 20) as file:
        for batch in file.iter_batches(batch_size=min(rows, 8192), columns=columns):
            waiting.append(pa.Table.from_batches([batch]).select(columns).replace_schema_metadata(None))
            while sum(table.num_rows for table in waiting) >= rows:
                whole = pa.concat_tables(waiting)
                yield whole.slice(0, rows)
                waiting = [whole.slice(rows)]
    if sum(table.num_rows for table in waiting):
        yield pa.concat_tables(waiting)


def parquet_schema(path: Path, keep: Keep) -> pa.Schema:
    """Return the schema of the columns that are copied to the output."""
    whole = pq.read_schema(path)
    return pa.schema([whole.field(name).remove_metadata() for name in chosen(keep, path, whole.names)])
