"""How a table is written: a shard by itself, and all shards as one file, without ever holding it in memory."""

import csv
import io
import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from weft.data.cells import as_text
from weft.foundation.errors import UserError
from weft.foundation.records import without_nan
from weft.foundation.sanitize import for_cell

GROUP_BYTES = 16 << 20
"""size of a parquet file's row groups before they are compressed: parts are joined until they are as large"""


class Format(ABC):
    """Part by part, equal rows give equal bytes."""

    @abstractmethod
    def part(self, table: pa.Table) -> bytes:
        """What a shard's part file holds."""

    @abstractmethod
    def join(self, parts: Iterable[Path], schema: pa.Schema, rows: int, to: Path) -> None:
        """Write the whole file, `rows` rows long, from its parts."""


def plain_values(column: pa.ChunkedArray) -> list[Any]:
    """Python's own values; times as text, since Python knows no nanoseconds."""
    return list((column.cast(pa.string()) if pa.types.is_temporal(column.type) else column).to_pylist())


def _cell(value: Any) -> Any:
    """Lists, objects and truth as JSON."""
    return as_text(value) if isinstance(value, list | dict | bool) else value


def _json_line(names: list[str], row: tuple[Any, ...]) -> str:
    """JSON knows no NaN."""
    return json.dumps(without_nan(dict(zip(names, row, strict=True))), ensure_ascii=False, default=str) + "\n"


class Chained(Format):
    """A head, and the parts as they are."""

    def join(self, parts: Iterable[Path], schema: pa.Schema, rows: int, to: Path) -> None:
        with to.open("wb") as whole:
            whole.write(self.head(schema, rows))
            for path in parts:
                with path.open("rb") as part:
                    shutil.copyfileobj(part, whole)

    @abstractmethod
    def head(self, schema: pa.Schema, rows: int) -> bytes:
        """What comes before the first row."""


class Delimited(Chained):
    """csv and tsv, with a header; lists are JSON. Unless `raw`, no cell is a formula for a spreadsheet."""

    def __init__(self, delimiter: str, *, raw: bool = False) -> None:
        self.delimiter = delimiter
        self.raw = raw

    def head(self, schema: pa.Schema, rows: int) -> bytes:  # noqa: ARG002
        return self._lines([schema.names])

    def part(self, table: pa.Table) -> bytes:
        rows = zip(*(plain_values(column) for column in table.columns), strict=True)
        return self._lines([_cell(value) for value in row] for row in rows)

    def _lines(self, rows: Iterable[Iterable[object]]) -> bytes:
        text = io.StringIO(newline="")
        shown = rows if self.raw else ([for_cell(v) if isinstance(v, str) else v for v in row] for row in rows)
        csv.writer(text, delimiter=self.delimiter, lineterminator="\n").writerows(shown)
        return text.getvalue().encode()


class JsonLines(Chained):
    def head(self, schema: pa.Schema, rows: int) -> bytes:  # noqa: ARG002
        return b""

    def part(self, table: pa.Table) -> bytes:
        rows = zip(*(plain_values(column) for column in table.columns), strict=True)
        return "".join(_json_line(table.column_names, row) for row in rows).encode()


class Npy(Chained):
    """The column `embedding` alone, as a numpy array [n, width] of 32-bit floats."""

    def head(self, schema: pa.Schema, rows: int) -> bytes:
        head = io.BytesIO()
        shape = rows, schema.field("embedding").type.list_size
        np.lib.format.write_array_header_1_0(head, {"descr": "<f4", "fortran_order": False, "shape": shape})
        return head.getvalue()

    def part(self, table: pa.Table) -> bytes:
        values = table.column("embedding").combine_chunks().flatten().to_numpy()
        return bytes(values.astype("<f4").tobytes())


class Parquet(Format):
    """Parts are Arrow streams: small parquet files would be slow to read, and one row group each in the end."""

    def part(self, table: pa.Table) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        return bytes(sink.getvalue().to_pybytes())

    def join(self, parts: Iterable[Path], schema: pa.Schema, rows: int, to: Path) -> None:  # noqa: ARG002
        with pq.ParquetWriter(to, schema) as writer:
            group: list[pa.Table] = []
            for path in parts:
                group.append(pa.ipc.open_stream(path.read_bytes()).read_all())
                if sum(table.nbytes for table in group) >= GROUP_BYTES:
                    writer.write_table(pa.concat_tables(group))
                    group = []
            if group:
                writer.write_table(pa.concat_tables(group))


FORMATS: dict[str, Format] = {
    ".csv": Delimited(","),
    ".tsv": Delimited("\t"),
    ".jsonl": JsonLines(),
    ".parquet": Parquet(),
    ".npy": Npy(),
}
RAW: dict[str, Format] = {".csv": Delimited(",", raw=True), ".tsv": Delimited("\t", raw=True)}


def choose_format(output: Path, *, raw_csv: bool) -> Format:
    """The format of an output by its ending."""
    if raw_csv and output.suffix not in RAW:
        raise UserError(f"--raw-csv goes with an output that ends in {' or '.join(RAW)}, not with {output}")
    return RAW[output.suffix] if raw_csv else FORMATS[output.suffix]
