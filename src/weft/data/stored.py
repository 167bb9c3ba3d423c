"""Stored outputs of a frozen body for rows of a file: pooled vectors, or the states of all tokens.

They are in parts, arrays of consecutive rows that are memory-mapped. Shapes: n rows, s sequences per row, t tokens of
all sequences, w width.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.foundation.values import Rows

PART_ROWS, PART_BYTES = 8192, 1 << 26
"""Limits of a part; a part has at least one row."""
Floats = NDArray[np.floating[Any]]


class StoredLayout:
    """Where the values of each row are: rows in ascending order, cut into parts."""

    def __init__(self, rows: Rows, tokens: NDArray[np.int64], *, depth: int | None, width: int, itemsize: int) -> None:
        """`rows` are indices in the file, ascending; `tokens` [s, n] the number of tokens of each of their sequences.

        `depth` is the layer whose token states are stored; None for pooled vectors.
        """
        self.rows = rows
        self.tokens = tokens
        self.depth = depth
        self.width = width
        sizes = tokens.sum(axis=0) if depth is not None else np.full(len(rows), len(tokens))
        self.ends = sizes.cumsum()
        """[n] number of vectors of all rows up to and including each row"""
        self.bytes = int(self.ends[-1]) * width * itemsize
        self.starts = _part_starts(self.ends, PART_BYTES // (width * itemsize))
        """Number of the first row of each part."""

    def part(self, number: int) -> slice:
        """Return the rows of a part, as numbers in `rows`."""
        stop = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.rows)
        return slice(int(self.starts[number]), int(stop))

    def part_shape(self, number: int) -> tuple[int, ...]:
        """Return the shape of the array of a part: [n, s, w] for vectors, [t, w] for states."""
        rows = self.part(number)
        if self.depth is None:
            return rows.stop - rows.start, len(self.tokens), self.width
        return int(self.ends[rows.stop - 1]) - self.before(rows.start), self.width

    def before(self, row: int) -> int:
        """Return the number of vectors of all rows before a row."""
        return int(self.ends[row - 1]) if row else 0

    def places(self, indices: Rows) -> Rows:
        """Return the number of each row in `rows`, given indices in the file."""
        found = np.searchsorted(self.rows, indices)
        assert np.array_equal(self.rows[found], indices), "only rows that the plan uses are stored"
        return found


def _part_starts(ends: NDArray[np.int64], vectors: int) -> NDArray[np.int64]:
    starts = [0]
    while True:
        first = starts[-1]
        before = int(ends[first - 1]) if first else 0
        stop = min(int(np.searchsorted(ends, before + vectors, side="right")), first + PART_ROWS)
        stop = max(stop, first + 1)
        if stop >= len(ends):
            return np.array(starts)
        starts.append(stop)


class StoredRows:
    """The values of all rows of a layout."""

    def __init__(self, layout: StoredLayout, parts: Sequence[Floats], dtype: np.dtype[Any]) -> None:
        """`dtype` is what values are converted to when they are read."""
        self.layout = layout
        self.depth = layout.depth
        self._parts = parts
        self._dtype = dtype

    def by_length(self, indices: Rows) -> Rows:
        """Return the order of rows of the file by the lengths of their sequences, first sequences first."""
        lengths = self.layout.tokens[:, self.layout.places(indices)]
        return np.lexsort(lengths[::-1])

    def vectors(self, indices: Rows) -> Floats:
        """Return [n, s, w] vectors of rows of the file."""
        places = self.layout.places(indices)
        numbers = np.searchsorted(self.layout.starts, places, side="right") - 1
        found = np.empty((len(places), len(self.layout.tokens), self.layout.width), dtype=self._dtype)
        for number in np.unique(numbers):
            own = numbers == number
            found[own] = self._parts[number][places[own] - self.layout.starts[number]]
        return found

    def states(self, index: int) -> list[Floats]:
        """Return the states [l, w] of the tokens of each sequence of a row of the file."""
        layout = self.layout
        (place,) = layout.places(np.array([index]))
        number = int(np.searchsorted(layout.starts, place, side="right")) - 1
        start = layout.before(int(place)) - layout.before(int(layout.starts[number]))
        lengths = layout.tokens[:, place]
        values = self._parts[number][start : start + int(lengths.sum())].astype(self._dtype)
        return np.split(values, lengths.cumsum()[:-1])
