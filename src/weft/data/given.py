"""Conversion of texts passed in Python: one text, an iterable of texts, or a column or table of any library."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft.data.cells import is_missing
from weft.data.files import SURROGATE
from weft.data.frames import Source, column_keys, column_of, frame_of, kind_of
from weft.data.tables import choose_columns
from weft.foundation.errors import UserError

Given = Any
"""A text, an iterable of texts (list, tuple, array, Series, generator), or a table with the text columns."""


def is_table(given: Given) -> bool:
    """Return whether `given` is a table with named columns."""
    return column_keys(given, "texts") is not None


def sides_of(texts: Given, texts2: Given | None, own: Sequence[str]) -> list[list[str]]:
    """Return one list of texts per text column. In a table: `text` and `text2`, or else the `own` column names."""
    keys = column_keys(texts, "texts")
    if keys is None:
        return [texts_of(texts, "texts"), *([] if texts2 is None else [texts_of(texts2, "texts2")])]
    if texts2 is not None:
        raise UserError("texts2: goes with a list of texts; a table has the second texts in a column of its own")
    columns = choose_columns(list(keys), own)
    missing = [name for name in columns if name not in keys]
    if missing:
        shown = ", ".join(map(repr, keys))
        raise UserError(f"texts: the table has no column {missing[0]!r}; its columns are {shown}")
    return [texts_of(column_of(texts, keys[name], "texts"), f"texts[{name!r}]") for name in columns]


def texts_of(given: Given, what: str) -> list[str]:
    """Return a list of texts and check each one. `what` is their name in messages."""
    if isinstance(given, str):
        return [_text(given, what)]
    if isinstance(given, bytes | set | frozenset) or column_keys(given, what) is not None:
        raise UserError(f"{what}: found {kind_of(given)}, expected a text or a list of texts")
    try:
        values = given.to_pylist() if hasattr(given, "to_pylist") else list(given)
    except TypeError:
        hint = "; for a file, use weft.predict_file" if hasattr(given, "__fspath__") else ""
        raise UserError(f"{what}: found {kind_of(given)}, expected a text or a list of texts{hint}") from None
    return [_text(value, f"{what}[{row}]") for row, value in enumerate(values)]


def _text(value: Any, where: str) -> str:
    if isinstance(value, str):
        if not value.isascii() and (odd := SURROGATE.search(value)):
            raise UserError(f"{where}: holds half a character (U+{ord(odd[0]):04X}); decode it as UTF-8 first")
        return str(value)
    if is_missing(value):
        raise UserError(f"{where}: is missing ({value}), expected a text; leave the row out, or put a text there")
    hint = "; the second texts of pairs go into texts2" if isinstance(value, list | tuple) else ""
    raise UserError(f"{where}: found {kind_of(value)}, expected a text{hint}")


def source_of(given: Given, name: str) -> Source:
    """Return a path for a file, or a frame for a table. `name` is used in error messages."""
    return Path(given) if isinstance(given, str | Path) else frame_of(given, name)
