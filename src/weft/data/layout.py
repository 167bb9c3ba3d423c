"""How a file of rows is written, as far as a recipe says it."""

from dataclasses import dataclass
from typing import Literal

Quoting = Literal["auto", "none", "csv"]


@dataclass(frozen=True)
class Layout:
    """Quoting, header and columns matter to csv and tsv alone; the encoding to every text file."""

    quoting: Quoting = "auto"
    encoding: str = "utf-8"
    """of files that are not UTF-8; one that holds UTF-8 characters and nothing else is read as UTF-8"""
    header: bool = True
    columns: tuple[str, ...] = ()
    """names of the columns of a file without a header; their numbers from 1 if there are none"""


PLAIN = Layout()
