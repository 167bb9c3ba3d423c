"""Records of a csv or tsv file, split both with and without quoting."""

import csv
from collections import deque
from collections.abc import Iterator
from typing import IO, Literal, NamedTuple

csv.field_size_limit(1 << 30)
QUOTE = '"'
LOOK_AHEAD = 4_000_000
"""Maximum number of characters in one quoted record. A quote that closes later counts as not closed."""

Way = Literal["csv", "none"]


class Record(NamedTuple):
    """One record of a file, split with and without quoting."""

    taken: tuple[str, ...]
    """Lines of the record if quotes enclose fields. Without quoting, the record is the first line only."""
    quoted: list[str] | None
    """Fields with quoting, or None if a quote is not closed properly."""
    plain: list[str]
    """Fields of the first line without quoting."""
    delimiter: str

    @property
    def is_blank(self) -> bool:
        return self.plain == [""]

    def fields(self, ways: tuple[Way, ...], width: int) -> tuple[list[str], int] | None:
        """Return the fields and their number of lines, by the first of `ways` that gives `width` fields, or None."""
        quoted = self.quoted if self.quoted is not None and len(self.quoted) == width else None
        # If both ways are allowed, a multi-line record is not split if that leaves lines with a wrong number of fields.
        fits = len(self.plain) == width and (ways == ("none",) or quoted is None or self.fits_plainly(width))
        for way in ways:
            if way == "none" and fits:
                return self.plain, 1
            if way == "csv" and quoted is not None:
                return quoted, len(self.taken)
        return None

    def fits_plainly(self, width: int) -> bool:
        """Return whether each line has `width` fields without quoting."""
        return all(len(split_plainly(line, self.delimiter)) == width for line in self.taken)


class Records:
    """Reader of a file, record by record. An unclosed quote affects one line only: the next line is a new record."""

    def __init__(self, handle: IO[str], delimiter: str) -> None:
        self.handle = handle
        self.delimiter = delimiter
        self._waiting: deque[str] = deque()
        self._taken: list[str] = []
        self._room = 0
        self._strict = csv.reader(self, delimiter=delimiter, strict=True)

    def read(self) -> Record | None:
        """Read the next record. Return None at the end of the file."""
        line = self._line()
        if not line:
            return None
        plain = split_plainly(line, self.delimiter)
        if QUOTE not in line:
            return Record((line,), plain, plain, self.delimiter)
        self._waiting.appendleft(line)
        self._taken, self._room = [], LOOK_AHEAD
        try:
            quoted = next(self._strict)
        except csv.Error:
            self.put_back(self._taken[1:])
            return Record((line,), None, plain, self.delimiter)
        return Record(tuple(self._taken), quoted, plain, self.delimiter)

    def put_back(self, lines: list[str] | tuple[str, ...]) -> None:
        """Put back unused lines of a record, to be read again."""
        self._waiting.extendleft(reversed(lines))

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        """Return the next line of the current record."""
        line = self._line() if self._room > 0 else ""
        if not line:
            raise StopIteration
        self._room -= len(line)
        self._taken.append(line)
        return line

    def _line(self) -> str:
        return self._waiting.popleft() if self._waiting else self.handle.readline()


def split_plainly(line: str, delimiter: str) -> list[str]:
    return line.rstrip("\r\n").split(delimiter)


def first_fields(line: str, delimiter: str) -> list[str]:
    """Return the fields of the first line of a file, with quoting if its quotes are well-formed."""
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True))
    except csv.Error:
        return split_plainly(line, delimiter)


def loosely_quoted(line: str, delimiter: str, width: int) -> list[str] | None:
    """Split a line with quotes that close, but not at the end of a field, such as `"so" he said,1`."""
    lines = list(csv.reader([line, ""], delimiter=delimiter))
    return lines[0] if len(lines) == 2 and len(lines[0]) == width else None
