"""Texts as Python users have them: one text, lists and the like, columns and tables of any library.

Nothing of pandas, polars or datasets is imported: a table is what names its columns and gives them by name.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from weft.data.files import SURROGATE, as_text
from weft.data.tables import choose_columns
from weft.foundation.errors import UserError

Given = Any
"""a text; an iterable of texts (list, tuple, array, Series, generator); a table with the task's text columns"""


def column_names(given: Given) -> list[str] | None:
    """The columns of a table, or None for anything else."""
    if isinstance(given, str):
        return None
    if isinstance(given, Mapping):
        return [str(name) for name in given]
    if hasattr(given, "collect"):  # a query that has not run yet, such as polars' LazyFrame
        raise UserError(f"texts: found {_kind(given)}, whose rows are not there yet; give what its collect() returns")
    for attribute in ("column_names", "columns"):  # Arrow and datasets; pandas and polars
        names = getattr(given, attribute, None)
        if names is not None and not callable(names) and hasattr(given, "__getitem__"):
            if isinstance(names, Mapping):
                raise UserError(f"found {_kind(given)} with the splits {', '.join(names)}; give one of them")
            return [str(name) for name in names]
    return None


def sides_of(texts: Given, texts2: Given | None, own: Sequence[str]) -> list[list[str]]:
    """One list of texts for each text column: of a table, those called `text` and `text2` or by their `own` names."""
    names = column_names(texts)
    if names is None:
        return [texts_of(texts, "texts"), *([] if texts2 is None else [texts_of(texts2, "texts2")])]
    if texts2 is not None:
        raise UserError("texts2: goes with a list of texts; a table has the second texts in a column of its own")
    columns = choose_columns(names, own)
    missing = [name for name in columns if name not in names]
    if missing:
        shown = ", ".join(map(repr, names))
        raise UserError(f"texts: the table has no column {missing[0]!r}; its columns are {shown}")
    return [texts_of(_column(texts, name), f"texts[{name!r}]") for name in columns]


def texts_of(given: Given, what: str) -> list[str]:
    """A list of texts, checked one by one; messages call it `what`."""
    if isinstance(given, str):
        return [_text(given, what)]
    if isinstance(given, bytes | set | frozenset) or column_names(given) is not None:
        raise UserError(f"{what}: found {_kind(given)}, expected a text or a list of texts")
    try:
        values = given.to_pylist() if hasattr(given, "to_pylist") else list(given)
    except TypeError:
        hint = "; for a file, use weft.predict_file" if hasattr(given, "__fspath__") else ""
        raise UserError(f"{what}: found {_kind(given)}, expected a text or a list of texts{hint}") from None
    return [_text(value, f"{what}[{row}]") for row, value in enumerate(values)]


def _text(value: Any, where: str) -> str:
    if isinstance(value, str):
        if not value.isascii() and (odd := SURROGATE.search(value)):
            raise UserError(f"{where}: holds half a character (U+{ord(odd[0]):04X}); decode it as UTF-8 first")
        return str(value)
    if is_missing(value):
        raise UserError(f"{where}: is missing ({value}), expected a text; leave the row out, or put a text there")
    hint = "; the second texts of pairs go into texts2" if isinstance(value, list | tuple) else ""
    raise UserError(f"{where}: found {_kind(value)}, expected a text{hint}")


def is_missing(value: Any) -> bool:
    """None, a NaN, or what a library has in their place (pandas' NA and NaT)."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and math.isnan(value)


def text_columns_of(table: Given) -> dict[str, list[str]]:
    """All columns of a table as a csv file would hold them."""
    names = column_names(table)
    if names is None:
        raise UserError(f"found {_kind(table)}, expected a file or a table")
    columns = {name: _values(_column(table, name)) for name in names}
    return {name: ["" if is_missing(v) else as_text(_plain(v)) for v in values] for name, values in columns.items()}


def _column(table: Given, name: str) -> Any:
    try:
        return table[name]
    except (TypeError, KeyError) as error:
        raise UserError(f"texts: column {name!r} of {_kind(table)} cannot be read ({error})") from None


def _values(column: Any) -> list[Any]:
    return list(column.to_pylist() if hasattr(column, "to_pylist") else column)


def _plain(value: Any) -> Any:
    """Numpy's numbers as Python's."""
    return value.item() if hasattr(value, "item") and not isinstance(value, str) else value


def _kind(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
