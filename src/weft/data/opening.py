"""What kind of file a path names, and what a library says of one that is not what its name says."""

import csv
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from weft.foundation.errors import UserError


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
