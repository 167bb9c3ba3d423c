"""Memory limits for reading files: a small untrusted file must not expand into gigabytes.

A few bytes can encode billions: a repeated value in a parquet file, a gzipped line without an end. Content that needs
more than about twice the file size plus a few hundred megabytes is rejected with an error before it is expanded.
"""

import gzip
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar, cast

import pyarrow as pa
import pyarrow.parquet as pq

from weft.foundation.errors import UserError

ROWS = 8192
"""Number of rows that are read, tokenized or predicted together."""
CHARACTERS = 200_000_000
"""Maximum number of characters in `ROWS` rows, in addition to twice the file size."""
LINE = 16_000_000
"""Maximum number of characters in one line."""
EXPANDED = 256 << 20
"""Number of bytes that any file may expand to."""
GZIP_RATIO = 100
PARQUET_RATIO = 20
"""Maximum expansion ratio above `EXPANDED` bytes. Text compresses to about a tenth of its size."""
VALUES = 20_000_000
"""Maximum number of list entries in one row group of a parquet column."""


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading bytes. A gzipped file is decompressed up to a size limit."""
    return cast(BinaryIO, BoundedGzip(path)) if path.suffix == ".gz" else path.open("rb")


class BoundedGzip(gzip.GzipFile):
    def __init__(self, path: Path) -> None:
        super().__init__(path, "rb")
        self.path = path
        self.limit = max(EXPANDED, GZIP_RATIO * path.stat().st_size)

    def read(self, size: int | None = -1) -> bytes:
        return self._checked(super().read(size))

    def read1(self, size: int = -1) -> bytes:
        return self._checked(super().read1(size))

    def _checked(self, block: bytes) -> bytes:
        if self.tell() > self.limit:
            raise UserError(
                f"{self.path}: expands to more than {GZIP_RATIO} times its size, which texts do not; "
                "unpack it and look at what it holds"
            )
        return block


class BoundedText(io.TextIOWrapper):
    """A text file with a maximum line length."""

    def __init__(self, path: Path, encoding: str) -> None:
        # bytes that are invalid in this encoding become lone surrogates, so that errors can report their line
        super().__init__(open_bytes(path), encoding=encoding, newline="", errors="surrogateescape")
        self.path = path
        self.lines = 0

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        line = super().readline(LINE + 1 if size < 0 else size)
        self.lines += 1
        if len(line) > LINE:
            raise UserError(
                f"{self.path}:{self.lines}: the line is longer than {LINE:,} characters; expected a row on every line. "
                "Is a line break or a quote missing?"
            )
        return line


class HasTexts(Protocol):
    @property
    def line(self) -> int: ...
    @property
    def values(self) -> dict[str, str]: ...


AnyRow = TypeVar("AnyRow", bound=HasTexts)


def within_memory(path: Path, rows: Iterator[AnyRow]) -> Iterator[AnyRow]:
    """Yield the rows of a file; raise if the rows held in memory together are too long."""
    limit = CHARACTERS + 2 * path.stat().st_size
    held = 0
    for number, row in enumerate(rows):
        held = (held if number % ROWS else 0) + sum(map(len, row.values.values()))
        if held > limit:
            raise UserError(_too_long(path, row.line))
        yield row


def _too_long(path: Path, row: int) -> str:
    return (
        f"{path}:{row}: the {ROWS:,} rows around this one hold more text than fits into memory together; "
        "shorten the texts (a body reads some thousand characters of each), or leave out columns that nobody needs"
    )


def parquet_rows(path: Path, choice: Callable[[list[str]], list[str]] | None) -> Iterator[dict[str, Any]]:
    """Yield the values of each row by column, for all columns or those selected by `choice`."""
    try:
        yield from _parquet_rows(path, choice)
    except (OSError, ValueError, OverflowError) as error:  # exceptions that pyarrow raises for damaged files
        raise UserError(f"{path}: cannot be read as parquet ({str(error).splitlines()[0]})") from None


def _parquet_rows(path: Path, choice: Callable[[list[str]], list[str]] | None) -> Iterator[dict[str, Any]]:
    with pq.ParquetFile(path) as file:
        found = file.schema_arrow.names
        columns = choice(found) if choice else found
        shared, one_by_one = _encodings(path, file, set(columns))
    limit = CHARACTERS + 2 * path.stat().st_size
    number = 0
    # without a buffer, a whole column of a row group is in memory at once
    with pq.ParquetFile(path, buffer_size=1 << 20, read_dictionary=shared) as file:
        for batch in file.iter_batches(batch_size=1 if one_by_one else ROWS, columns=columns):
            if sum(_text_bytes(column) for column in batch.columns) > limit:
                raise UserError(_too_long(path, number + 1))
            yield from batch.to_pylist()
            number += batch.num_rows


def _encodings(path: Path, file: pq.ParquetFile, columns: set[str]) -> tuple[list[str], bool]:
    """Return the text columns that can be read dictionary-encoded, and whether rows must be read one by one.

    With delta encoding, one byte can encode a long text, and pyarrow always expands it.
    """
    shared, one_by_one = [], False
    metadata = file.metadata
    for number in range(metadata.num_columns):
        column = file.schema.column(number)
        if column.path.split(".")[0] not in columns:
            continue
        chunks = [metadata.row_group(group).column(number) for group in range(metadata.num_row_groups)]
        for chunk in chunks:
            _require_reasonable(path, chunk, is_list=column.max_repetition_level > 0)
        delta = any("DELTA_BYTE_ARRAY" in chunk.encodings for chunk in chunks)
        one_by_one |= delta
        if column.physical_type == "BYTE_ARRAY" and column.logical_type.type in ("STRING", "NONE") and not delta:
            shared.append(column.path)
    return shared, one_by_one


def _require_reasonable(path: Path, chunk: Any, *, is_list: bool) -> None:
    """Reject a column of a row group that expands to far more than its size in the file."""
    where = f"{path}: column {chunk.path_in_schema.split('.')[0]!r}"
    advice = "write the file again in smaller row groups"
    if is_list and chunk.num_values > VALUES:
        raise UserError(f"{where} has {chunk.num_values:,} list entries in one row group; {advice}")
    size = chunk.total_uncompressed_size
    if size > max(EXPANDED, PARQUET_RATIO * chunk.total_compressed_size):
        raise UserError(f"{where} expands to {size:,} bytes in one row group, far more than it has; {advice}")


def _text_bytes(array: Any) -> int:
    """Return the size in bytes of the texts of an array, with repeated texts counted every time."""
    if pa.types.is_dictionary(array.type):
        import pyarrow.compute as pc  # slow to import, and not needed to predict single texts

        lengths = pc.binary_length(array.dictionary).take(array.indices)
        return int(pc.sum(pc.cast(lengths, pa.int64())).as_py() or 0)
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        return _text_bytes(array.flatten())
    if pa.types.is_struct(array.type):
        return sum(_text_bytes(inner) for inner in array.flatten())
    return int(array.nbytes)
