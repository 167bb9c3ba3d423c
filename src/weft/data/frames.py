"""Tables passed in Python: from pandas, polars, Arrow or datasets, mappings of columns, lists of rows.

None of these libraries is imported: a table is any object that lists its column names and returns columns by name.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.data.cells import cell_text
from weft.foundation.errors import UserError

Table = Any
"""A data frame, an Arrow table, a data set or a mapping of columns. `frame_of` also accepts a list of rows."""
SPLITS = ("train", "dev", "test")


@dataclass(frozen=True, eq=False)
class Frame:
    """A table with a name for messages. Its cells are read as text, like those of a file."""

    name: str
    """Name for messages, such as stars.train."""
    table: Table
    keys: Mapping[str, Any]
    """Column name -> key of the column in the table."""

    def __str__(self) -> str:
        return self.name

    def only(self, columns: Sequence[str]) -> "Frame":
        """Return a frame with these columns only, so that the other columns do not affect the digest."""
        return Frame(self.name, self.table, {name: self.keys[name] for name in dict.fromkeys(columns)})

    def rows(self) -> Iterator[dict[str, str]]:
        """Yield the text of each column, row by row."""
        cells = [self._cells(name) for name in self.keys]
        try:
            for row in zip(*cells, strict=True):
                yield dict(zip(self.keys, row, strict=True))
        except ValueError:
            raise UserError(f"{self.name}: its columns have different lengths; expected a value in every row") from None

    def digest(self) -> str:
        """Return a hash of all cells and column names."""
        content = hashlib.sha256(json.dumps(list(self.keys)).encode())
        for row in self.rows():
            content.update(json.dumps(list(row.values())).encode())
        return content.hexdigest()

    def _cells(self, name: str) -> Iterator[str]:
        column = column_of(self.table, self.keys[name], self.name)
        if isinstance(column, str | bytes) or not hasattr(column, "__len__"):  # a generator can be read only once
            raise UserError(f"{self.name}: column {name!r} is {kind_of(column)}, expected a list of its values")
        if hasattr(column, "chunks"):  # Arrow, one chunk at a time
            return (cell_text(value) for chunk in column.chunks for value in chunk.to_pylist())
        return (cell_text(value) for value in (column.to_pylist() if hasattr(column, "to_pylist") else column))


Source = Path | Frame
"""Source of rows: a file or a table in memory."""
GivenFrames = Mapping[str, Mapping[str, Frame]]
"""Task -> split -> rows, for the splits given in Python."""


def place(source: Source, line: int) -> str:
    """Return the location of a row for messages: its line in a file, or its index in a table, from 0."""
    return f"row {line} of {source}" if isinstance(source, Frame) else f"{source}:{line}"


def frame_of(given: Table, name: str) -> Frame:
    """Return the frame of a given table. `name` is its name in messages."""
    if isinstance(given, list | tuple) and given and all(isinstance(row, Mapping) for row in given):
        given = _columns(given, name)
    keys = column_keys(given, name)
    if keys is None:
        expected = "a data frame, an Arrow table, a data set, a dictionary of columns or a list of dictionaries"
        raise UserError(f"{name}: found {kind_of(given)}, expected {expected}")
    return Frame(name, given, keys)


def frames_of(data: Mapping[str, Mapping[str, Table]]) -> GivenFrames:
    """Return the frames of the `data` argument of `weft.train`: task -> split -> table."""
    if not isinstance(data, Mapping):
        raise UserError(f"data: found {kind_of(data)}, expected a dictionary such as {_example('TASK')}")
    return {task: _splits(task, own) for task, own in data.items()}


def _splits(task: str, own: Mapping[str, Table]) -> dict[str, Frame]:
    if not isinstance(own, Mapping) or not own:
        raise UserError(f"data[{task!r}]: found {kind_of(own)}, expected its splits: data={_example(task)}")
    for split in own:
        if split not in SPLITS:
            hint = "; call it 'dev'" if split in ("validation", "valid", "val") else f": data={_example(task)}"
            raise UserError(f"data[{task!r}]: found the key {split!r}, expected train, dev or test{hint}")
    return {split: frame_of(table, f"{task}.{split}") for split, table in own.items()}


def _example(task: str) -> str:
    return f"{{{task!r}: {{'train': ..., 'dev': ...}}}}"


def column_keys(given: Table, name: str) -> dict[str, Any] | None:
    """Return column name -> key of the column in the table, or None if `given` is not a table."""
    if isinstance(given, str):
        return None
    if isinstance(given, Mapping) and not _holds_tables(given):
        return _named(list(given), name)
    if hasattr(given, "collect"):  # a lazy query, such as polars' LazyFrame
        raise UserError(
            f"{name}: found {kind_of(given)}, whose rows are not there yet; give what its collect() returns"
        )
    for attribute in ("column_names", "columns"):  # Arrow and datasets; pandas and polars
        names = getattr(given, attribute, None)
        if names is not None and not callable(names) and hasattr(given, "__getitem__"):
            if isinstance(names, Mapping):
                raise UserError(f"{name}: found {kind_of(given)} with the splits {', '.join(names)}; give one of them")
            return _named(list(names), name)
    return None


def column_of(table: Table, key: Any, name: str) -> Any:
    """Return one column of a table. `name` is the name of the table in messages."""
    try:
        return table[key]
    except (TypeError, KeyError) as error:
        raise UserError(f"{name}: column {key!r} of {kind_of(table)} cannot be read ({error})") from None


def kind_of(value: Any) -> str:
    """Return the type name of a value with its indefinite article."""
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _holds_tables(given: Mapping[Any, Any]) -> bool:
    """Return whether `given` is a DatasetDict, a mapping of splits."""
    return isinstance(getattr(given, "column_names", None), Mapping)


def _named(keys: list[Any], name: str) -> dict[str, Any]:
    named = {str(key): key for key in keys}
    if len(named) < len(keys):
        twice = next(str(key) for key in keys if [str(other) for other in keys].count(str(key)) > 1)
        raise UserError(f"{name}: two columns are called {twice!r}; rename one of them")
    return named


def _columns(rows: Sequence[Mapping[Any, Any]], name: str) -> dict[str, list[Any]]:
    """Convert rows to columns. Missing keys become empty cells, as in a jsonl file."""
    columns = list(rows[0])
    for number, row in enumerate(rows):
        unknown = [key for key in row if key not in rows[0]]
        if unknown:
            raise UserError(f"row {number} of {name}: has the key {unknown[0]!r}, which the first row has not")
    return {key: [row.get(key) for row in rows] for key in columns}
