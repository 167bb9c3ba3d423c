"""Tables that users hand over in Python: of pandas, polars, Arrow or datasets, columns by name, lists of rows.

None of those libraries is imported: a table is what names its columns and gives them by name.
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
"""a data frame, an Arrow table, a data set, a mapping of columns; for a `Frame` also a list of rows"""
SPLITS = ("train", "dev", "test")


@dataclass(frozen=True, eq=False)
class Frame:
    """A table under the name that messages use. Its cells are read as those of a file: as text."""

    name: str
    """such as stars.train"""
    table: Table
    keys: Mapping[str, Any]
    """the columns, each with what the table itself calls it"""

    def __str__(self) -> str:
        return self.name

    def only(self, columns: Sequence[str]) -> "Frame":
        """These columns alone, so that the others do not count as content."""
        return Frame(self.name, self.table, {name: self.keys[name] for name in dict.fromkeys(columns)})

    def rows(self) -> Iterator[dict[str, str]]:
        """Row by row, the text of each column."""
        cells = [self._cells(name) for name in self.keys]
        try:
            for row in zip(*cells, strict=True):
                yield dict(zip(self.keys, row, strict=True))
        except ValueError:
            raise UserError(f"{self.name}: its columns have different lengths; expected a value in every row") from None

    def digest(self) -> str:
        """A hash of all its cells and of the names of its columns."""
        content = hashlib.sha256(json.dumps(list(self.keys)).encode())
        for row in self.rows():
            content.update(json.dumps(list(row.values())).encode())
        return content.hexdigest()

    def _cells(self, name: str) -> Iterator[str]:
        column = column_of(self.table, self.keys[name], self.name)
        if isinstance(column, str | bytes) or not hasattr(column, "__len__"):  # a generator could be read once only
            raise UserError(f"{self.name}: column {name!r} is {kind_of(column)}, expected a list of its values")
        if hasattr(column, "chunks"):  # Arrow, a part at a time
            return (cell_text(value) for chunk in column.chunks for value in chunk.to_pylist())
        return (cell_text(value) for value in (column.to_pylist() if hasattr(column, "to_pylist") else column))


Source = Path | Frame
"""where rows come from"""
GivenFrames = Mapping[str, Mapping[str, Frame]]
"""task -> split -> its rows, where they were given in Python"""


def place(source: Source, line: int) -> str:
    """What messages call a row: its line in a file; its number in a table, from 0 as Python counts."""
    return f"row {line} of {source}" if isinstance(source, Frame) else f"{source}:{line}"


def frame_of(given: Table, name: str) -> Frame:
    """A table that somebody gave; messages call it `name`."""
    if isinstance(given, list | tuple) and given and all(isinstance(row, Mapping) for row in given):
        given = _columns(given, name)
    keys = column_keys(given, name)
    if keys is None:
        expected = "a data frame, an Arrow table, a data set, a dictionary of columns or a list of dictionaries"
        raise UserError(f"{name}: found {kind_of(given)}, expected {expected}")
    return Frame(name, given, keys)


def frames_of(data: Mapping[str, Mapping[str, Table]]) -> GivenFrames:
    """`data` of `weft.train`: for each task named its splits, each a table."""
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
    """The columns of a table, each with what the table itself calls it; None for anything else."""
    if isinstance(given, str):
        return None
    if isinstance(given, Mapping) and not _holds_tables(given):
        return _named(list(given), name)
    if hasattr(given, "collect"):  # a query that has not run yet, such as polars' LazyFrame
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
    """One column of a table that messages call `name`."""
    try:
        return table[key]
    except (TypeError, KeyError) as error:
        raise UserError(f"{name}: column {key!r} of {kind_of(table)} cannot be read ({error})") from None


def kind_of(value: Any) -> str:
    """What a value is, with its article."""
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _holds_tables(given: Mapping[Any, Any]) -> bool:
    """Whether it is a DatasetDict, which is a mapping of splits."""
    return isinstance(getattr(given, "column_names", None), Mapping)


def _named(keys: list[Any], name: str) -> dict[str, Any]:
    named = {str(key): key for key in keys}
    if len(named) < len(keys):
        twice = next(str(key) for key in keys if [str(other) for other in keys].count(str(key)) > 1)
        raise UserError(f"{name}: two columns are called {twice!r}; rename one of them")
    return named


def _columns(rows: Sequence[Mapping[Any, Any]], name: str) -> dict[str, list[Any]]:
    """Rows as columns; a key that only some rows have is empty in the others, as in a jsonl file."""
    columns = list(rows[0])
    for number, row in enumerate(rows):
        unknown = [key for key in row if key not in rows[0]]
        if unknown:
            raise UserError(f"row {number} of {name}: has the key {unknown[0]!r}, which the first row has not")
    return {key: [row.get(key) for row in rows] for key in columns}
