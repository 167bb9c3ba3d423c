"""Output formats: serialize one shard, and join all shards into one file without loading it into memory."""

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
"""minimum uncompressed size of a parquet row group: parts are concatenated until they reach it"""


class Format(ABC):
    """Base class of output formats. Serialization is deterministic: equal rows give equal bytes in each part."""

    @abstractmethod
    def part(self, table: pa.Table) -> bytes:
        """Return the contents of a shard's part file."""

    @abstractmethod
    def join(self, parts: Iterable[Path], schema: pa.Schema, rows: int, to: Path) -> None:
        """Write the whole file of `rows` rows from its parts."""


def plain_values(column: pa.ChunkedArray) -> list[Any]:
    """Return a column as Python values. Temporal values become text, since Python does not support nanoseconds."""
    return list((column.cast(pa.string()) if pa.types.is_temporal(column.type) else column).to_pylist())


def _cell(value: Any) -> Any:
    """Convert lists, dictionaries and booleans to JSON text."""
    return as_text(value) if isinstance(value, list | dict | bool) else value


def _json_line(names: list[str], row: tuple[Any, ...]) -> str:
    """Return a row as one line of JSON. NaN is replaced, since JSON does not support it."""
    return json.dumps(without_nan(dict(zip(names, row, strict=True))), ensure_ascii=False, default=str) + "\n"


class Chained(Format):
    """Format whose file is a header followed by the unchanged parts."""

    def join(self, parts: Iterable[Path], schema: pa.Schema, rows: int, to: Path) -> None:
        with to.open("wb") as whole:
            whole.write(self.head(schema, rows))
            for path in parts:
                with path.open("rb") as part:
                    shutil.copyfileobj(part, whole)

    @abstractmethod
    def head(self, schema: pa.Schema, rows: int) -> bytes:
        """Return the bytes before the first row."""


class Delimited(Chained):
    """CSV and TSV with a header; lists are JSON. Spreadsheet formulas in cells are escaped unless `raw` is True."""

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
    """Only the column `embedding`, as a NumPy array [n, width] of 32-bit floats."""

    def head(self, schema: pa.Schema, rows: int) -> bytes:
        head = io.BytesIO()
        shape = rows, schema.field("embedding").type.list_size
        np.lib.format.write_array_header_1_0(head, {"descr": "<f4", "fortran_order": False, "shape": shape})
        return head.getvalue()

    def part(self, table: pa.Table) -> bytes:
        values = table.column("embedding").combine_chunks().flatten().to_numpy()
        return bytes(values.astype("<f4").tobytes())


class Parquet(Format):
    """Parquet. Parts are Arrow streams: small parquet parts would be slow to read and give one row group each."""

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
    """Return the format for an output's file extension."""
    if raw_csv and output.suffix not in RAW:
        raise UserError(f"--raw-csv goes with an output that ends in {' or '.join(RAW)}, not with {output}")
    return RAW[output.suffix] if raw_csv else FORMATS[output.suffix]
