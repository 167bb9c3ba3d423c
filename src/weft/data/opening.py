"""File formats by file name, and error messages for files that do not match their format."""

import csv
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from weft.data.conll import ENDINGS
from weft.foundation.errors import UserError


@contextmanager
def explaining(path: Path) -> Iterator[None]:
    """Convert library errors about a file that does not match its format to a `UserError`."""
    try:
        yield
    except (csv.Error, EOFError, zlib.error, gzip.BadGzipFile, pa.ArrowException, UnicodeError) as error:
        raise UserError(f"{path}: cannot be read as {ending(path).removeprefix('.') or 'a table'} ({error})") from None


def ending(path: Path) -> str:
    """Return the file extension without `.gz`: `.csv` for a.csv and a.csv.gz."""
    return path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix


def is_delimited(path: Path) -> bool:
    """Return whether a file is read as csv or tsv: any file with no other known ending."""
    return ending(path) not in (".jsonl", ".parquet") and not is_conll(path)


def is_conll(path: Path) -> bool:
    """Return whether a file has one word per line."""
    return ending(path) in ENDINGS
