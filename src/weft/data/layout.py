"""File layout settings of a recipe."""

from dataclasses import dataclass
from typing import Literal

Quoting = Literal["auto", "none", "csv"]


@dataclass(frozen=True)
class Layout:
    """Layout of a file. Quoting, header and columns apply to csv and tsv only, the encoding to all text files."""

    quoting: Quoting = "auto"
    encoding: str = "utf-8"
    """Encoding of files that are not UTF-8. Valid UTF-8 with non-ASCII characters is always read as UTF-8."""
    header: bool = True
    columns: tuple[str, ...] = ()
    """Column names of a file without a header. Defaults to their numbers from 1."""


PLAIN = Layout()
