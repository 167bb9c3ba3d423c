"""Statistics of a column, computed over all rows of a file in constant memory."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from weft.kinds.cells import as_flag, as_float, canonical, divide

DISTINCT_KEPT = 200
"""Maximum number of distinct values of a column of classes."""
WORDS_KEPT = 5000
"""Number of distinct words of a column to compare with another column."""
ID_WORDS = {"id", "ids", "idx", "index", "uuid", "row", "guid", "unnamed", "key", "hash", "url", "link"}
DATE_WORDS = {"date", "time", "timestamp", "year", "month", "day", "created", "updated", "at"}
DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([T ]\d{1,2}:\d{2}.*)?|\d{1,2}:\d{2}(:\d{2})?")
LABEL_WORDS = (
    "label",
    "class",
    "category",
    "sentiment",
    "stars",
    "rating",
    "score",
    "target",
    "similarity",
    "duplicate",
    "tags",
)
HEADER_WORDS = set(
    "text label sentence class category target id idx index title review message comment tweet question answer body "
    "content document phrase query utterance intent sentiment emotion premise hypothesis name date stars".split()
)
"""Column names that rarely occur as values."""


def name_words(name: str) -> list[str]:
    """Return the words of a column name: `is_duplicate`, `isDuplicate`, `is duplicate` -> is, duplicate."""
    return re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())


@dataclass
class Column:
    """Summary statistics of one column."""

    name: str
    filled: int = 0
    empty: int = 0
    words: int = 0
    numbers: int = 0
    whole: int = 0
    """Number of rows with an integer."""
    flags: int = 0
    """Number of rows with 0 or 1, true or false, yes or no."""
    dates: int = 0
    listed: int = 0
    """Number of rows with a list in brackets."""
    counts: Counter[str] = field(default_factory=Counter)
    overflown: bool = False
    """Whether the column has more than `DISTINCT_KEPT` distinct values."""
    parts: Counter[str] = field(default_factory=Counter)
    """Counts of the individual labels, for cells that may contain several."""
    has_several: bool = False
    """Whether any cell contains several labels."""
    parts_overflown: bool = False
    vocabulary: set[str] = field(default_factory=set)

    def add(self, value: str) -> None:
        text = value.strip()
        if not text:
            self.empty += 1
            return
        self.filled += 1
        words = text.split()
        self.words += len(words)
        number = as_float(text)
        self.numbers += number is not None
        self.whole += number is not None and number.is_integer()
        self.flags += as_flag(text) is not None
        self.dates += DATE.fullmatch(text) is not None
        self.listed += text.startswith("[") and text.endswith("]")
        if not self.overflown:
            self.counts[canonical(text)] += 1
            self.overflown = len(self.counts) > DISTINCT_KEPT
        if not self.parts_overflown:
            names = divide(text)
            self.has_several = self.has_several or len(names) > 1
            self.parts.update(names)
            self.parts_overflown = len(self.parts) > DISTINCT_KEPT
        if len(self.vocabulary) < WORDS_KEPT:
            self.vocabulary.update(word.lower().strip(".,;:!?\"'()") for word in words)

    @property
    def mean_words(self) -> float:
        return self.words / max(self.filled, 1)

    @property
    def is_numeric(self) -> bool:
        return self.filled > 0 and self.numbers == self.filled

    @property
    def is_flag(self) -> bool:
        """Whether the column contains both of two opposite values, and no others."""
        return self.filled > 0 and self.flags == self.filled and len({as_flag(value) for value in self.counts}) == 2

    @property
    def is_text(self) -> bool:
        """Whether rows have several words and are mostly distinct."""
        repeats = not self.overflown and len(self.counts) <= max(2, self.filled // 5)
        several = self.mean_words >= 2.5 and not self.is_several
        return self.filled > 0 and not self.is_numeric and not self.is_date and several and not repeats

    @property
    def is_several(self) -> bool:
        """Whether cells contain several labels of a small set, such as `plot;acting` or `["plot", "acting"]`."""
        if self.is_numeric or self.parts_overflown or not self.parts:
            return False
        if self.listed == self.filled:
            return True
        return self.has_several and len(self.parts) <= 30 and all(len(name.split()) <= 3 for name in self.parts)

    @property
    def is_date(self) -> bool:
        return self.filled > 0 and self.dates == self.filled

    @property
    def is_named_label(self) -> bool:
        return any(word in self.name.lower() for word in LABEL_WORDS)

    @property
    def is_class_like(self) -> bool:
        """Whether the values are a small set rather than a quantity."""
        few = not self.overflown and len(self.counts) <= 10 and self.whole == self.filled
        return self.is_several or self.is_flag or not self.is_numeric or few

    @property
    def could_be_label(self) -> bool:
        if self.filled == 0 or self.is_text or self.is_date or self.looks_like_id:
            return False
        if self.is_several:
            return len(self.parts) >= 2
        if self.is_numeric:
            return len(self.counts) >= 2
        return not self.overflown and 2 <= len(self.counts) <= max(2, self.filled // 3)

    @property
    def looks_like_id(self) -> bool:
        words = name_words(self.name)
        if not words or ID_WORDS & set(words) or (DATE_WORDS & set(words) and not self.is_text):
            return True
        if self.whole < self.filled or self.is_flag or self.is_named_label:
            return False
        return self.overflown or len(self.counts) == self.filled > 10


def shared_words(one: Column, other: Column) -> float:
    """Return the fraction of the smaller vocabulary that also occurs in the other column."""
    return len(one.vocabulary & other.vocabulary) / max(1, min(len(one.vocabulary), len(other.vocabulary)))


def header_is_data(header: Sequence[str], columns: Sequence[Column]) -> bool:
    """Return whether a header looks like a row of data, with no cell that looks like a column name."""
    if HEADER_WORDS & {cell.strip().lower() for cell in header}:
        return False
    signs = [_is_value(cell.strip(), column) for cell, column in zip(header, columns, strict=True)]
    return True in signs and False not in signs


def _is_value(cell: str, column: Column) -> bool | None:
    """Return True if a header cell is a value of its column, False if it is a name, None if it may be either."""
    is_number = as_float(cell) is not None
    if not column.filled:
        return None
    if column.is_date:
        return DATE.fullmatch(cell) is not None
    if column.is_text:
        return False if is_number or not cell else (True if len(cell.split()) > 3 else None)
    if column.is_several:
        return all(name in column.parts for name in divide(cell))
    if not column.overflown and len(column.counts) <= max(2, column.filled // 3):
        return canonical(cell) in column.counts
    return is_number if column.is_numeric else None
