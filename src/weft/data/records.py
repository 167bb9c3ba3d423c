"""The records of a csv or tsv file, cut with quoting and without it, so that either can be taken."""

import csv
from collections import deque
from collections.abc import Iterator
from typing import IO, Literal, NamedTuple

csv.field_size_limit(1 << 30)
QUOTE = '"'
LOOK_AHEAD = 4_000_000
"""characters of one quoted record: a quote that closes later than this does not close"""

Way = Literal["csv", "none"]


class Record(NamedTuple):
    """What stands at one place of a file."""

    taken: tuple[str, ...]
    """its lines if quotes enclose fields; the first one is all that it is if they do not"""
    quoted: list[str] | None
    """fields if quotes enclose them; None if a quote that opens here is not closed properly"""
    plain: list[str]
    """fields of the first line if quotes mean nothing"""
    delimiter: str

    @property
    def is_blank(self) -> bool:
        return self.plain == [""]

    def fields(self, ways: tuple[Way, ...], width: int) -> tuple[list[str], int] | None:
        """The fields, and how many lines they are, by the first way that gives as many as there are columns."""
        quoted = self.quoted if self.quoted is not None and len(self.quoted) == width else None
        # Where both ways are open, a record of several lines is not cut if that would leave lines that fit nowhere.
        fits = len(self.plain) == width and (ways == ("none",) or quoted is None or self.fits_plainly(width))
        for way in ways:
            if way == "none" and fits:
                return self.plain, 1
            if way == "csv" and quoted is not None:
                return quoted, len(self.taken)
        return None

    def fits_plainly(self, width: int) -> bool:
        """Whether each of its lines is a row if quotes mean nothing."""
        return all(len(split_plainly(line, self.delimiter)) == width for line in self.taken)


class Records:
    """Reads a file record by record. A quote that is not closed costs one line: the next one is read by itself."""

    def __init__(self, handle: IO[str], delimiter: str) -> None:
        self.handle = handle
        self.delimiter = delimiter
        self._waiting: deque[str] = deque()
        self._taken: list[str] = []
        self._room = 0
        self._strict = csv.reader(self, delimiter=delimiter, strict=True)

    def read(self) -> Record | None:
        """The next record, or None at the end."""
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
        """Lines of a record that were not used: they are read again."""
        self._waiting.extendleft(reversed(lines))

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        """A further line for the record that is being read."""
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
    """The fields of a file's first line, with quoting if it is well quoted by itself."""
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True))
    except csv.Error:
        return split_plainly(line, delimiter)


def loosely_quoted(line: str, delimiter: str, width: int) -> list[str] | None:
    """Fields of a line whose quotes close, but not where a field ends: `"so" he said,1`."""
    lines = list(csv.reader([line, ""], delimiter=delimiter))
    return lines[0] if len(lines) == 2 and len(lines[0]) == width else None
