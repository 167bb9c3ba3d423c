"""Conversion of table cells of any library to text."""

import json
import math
from typing import Any


def as_text(value: Any) -> str:
    """Return a typed value as text, as in a csv file. Lists and objects become JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def cell_text(value: Any) -> str:
    """Return a value of numpy, pandas or polars as text. A missing value becomes an empty string."""
    if isinstance(value, str):
        return str(value)  # converts numpy strings to Python strings
    if is_missing(value):
        return ""
    for plain in ("tolist", "to_list"):  # numpy scalars and arrays; polars lists
        if hasattr(value, plain):
            return as_text(getattr(value, plain)())
    return as_text(value)


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or pandas' NA or NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and math.isnan(value)
