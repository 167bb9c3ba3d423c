"""Profile of a whole file: its columns, whether it has a header, and its encoding."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from weft.data.bounds import open_bytes
from weft.data.columns import Column, header_is_data
from weft.data.dialect import BLOCK, detect, scan
from weft.data.files import Row, read_rows
from weft.data.layout import Layout
from weft.data.opening import ending, explaining, is_delimited
from weft.data.problems import Problems
from weft.data.words import listed_words
from weft.foundation.errors import UserError


@dataclass(frozen=True)
class Profile:
    """Layout, row counts and column statistics of one file."""

    path: Path
    layout: Layout
    rows: int
    bad_lines: int
    columns: dict[str, Column]
    tagged: tuple[str, str] | None = None
    """the columns with the words of each text and with their tags, if there are such columns"""


def profile(path: Path, encoding: str) -> Profile:
    """Count every column of a file over all of its rows."""
    problems = Problems(path)
    layout = Layout(encoding=encoding, header=not is_delimited(path))  # read the first line as a row; checked below
    stream = read_rows(path, problems, layout=layout)
    first = next(stream, None)
    pairs = TagPairs()
    rows, columns = _count(pairs.watch(stream if is_delimited(path) else chain([first] if first else [], stream)))
    if is_delimited(path) and first is not None and rows:
        header = list(first.values.values())
        if header_is_data(header, [columns[name] for name in first.values]):
            for name, value in first.values.items():
                columns[name].add(value)
            rows += 1
        else:
            layout = replace(layout, header=True)
            names = detect(path, layout).names
            columns = dict(zip(names, columns.values(), strict=True))
            for name, column in columns.items():
                column.name = name
    if not rows:
        problems.stop()
        raise UserError(f"{path}: has no rows")
    return Profile(path, layout, rows, problems.counts.total(), columns, pairs.chosen(columns))


class TagPairs:
    """Pairs of columns that hold lists of equal lengths in every row."""

    def __init__(self) -> None:
        self.pairs: set[tuple[str, str]] | None = None

    def watch(self, stream: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows unchanged."""
        for row in stream:
            if self.pairs is None or self.pairs:
                self._see(row)
            yield row

    def _see(self, row: Row) -> None:
        lengths = {name: len(words) for name, cell in row.values.items() if (words := listed_words(cell)) is not None}
        equal = {(one, two) for one in lengths for two in lengths if one != two and lengths[one] == lengths[two]}
        self.pairs = equal if self.pairs is None else self.pairs & equal

    def chosen(self, columns: dict[str, Column]) -> tuple[str, str] | None:
        """Return the pair whose second column has the fewest distinct entries, and fewer than the first."""
        found = [
            (one, two)
            for one, two in sorted(self.pairs or ())
            if not columns[two].parts_overflown
            and (columns[one].parts_overflown or len(columns[two].parts) < len(columns[one].parts))
        ]
        return min(found, key=lambda pair: len(columns[pair[1]].parts)) if found else None


def _count(stream: Iterable[Row]) -> tuple[int, dict[str, Column]]:
    rows = 0
    columns: dict[str, Column] = {}
    for row in stream:
        rows += 1
        for name, value in row.values.items():
            columns.setdefault(name, Column(name)).add(value)
    return rows, columns


def guess_encoding(paths: Iterable[Path]) -> tuple[str, Path | None]:
    """Guess the value for the recipe key `encoding`; returns it and the first file that is not UTF-8, if any."""
    for path in paths:
        if not path.is_file() or ending(path) == ".parquet":
            continue
        with explaining(path):
            guess = "utf-8" if scan(path).is_utf8 else _not_utf8(path)
        if guess != "utf-8":
            return guess, path
    return "utf-8", None


def _not_utf8(path: Path) -> str:
    """Guess an encoding other than UTF-8.

    Western European encodings are the most common; others cannot be distinguished without knowing the language.
    """
    marked = next(_blocks(path))[:2] in (b"\xff\xfe", b"\xfe\xff")
    if marked:
        return "utf-16"
    if any(b"\0" in block for block in _blocks(path)):
        return "utf-8"  # binary: reading it as UTF-8 fails with a clear message
    try:
        for block in _blocks(path):
            block.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"


def _blocks(path: Path) -> Iterator[bytes]:
    with open_bytes(path) as handle:
        while block := handle.read(BLOCK):
            yield block
