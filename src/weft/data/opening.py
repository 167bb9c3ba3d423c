"""Opens a file that may be gzipped, as bytes or as text."""

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, cast

import pyarrow as pa

from weft.errors import UserError


def open_bytes(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def open_text(path: Path, encoding: str) -> IO[str]:
    """Bytes that are not of this encoding become lone surrogates, so that a reader can say on which line they are."""
    return io.TextIOWrapper(open_bytes(path), encoding=encoding, newline="", errors="surrogateescape")


@contextmanager
def explaining(path: Path) -> Iterator[None]:
    """What a library says of a file that is not what its name says, as a message."""
    try:
        yield
    except (csv.Error, EOFError, zlib.error, gzip.BadGzipFile, pa.ArrowException, UnicodeError) as error:
        raise UserError(f"{path}: cannot be read as {ending(path).removeprefix('.') or 'a table'} ({error})") from None


def ending(path: Path) -> str:
    """`.csv` for a.csv and for a.csv.gz"""
    return path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix


def is_delimited(path: Path) -> bool:
    """Whether it is read as csv or tsv: every file that is neither jsonl nor parquet."""
    return ending(path) not in (".jsonl", ".parquet")
