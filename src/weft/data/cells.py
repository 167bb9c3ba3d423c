"""One cell of a table as text, whatever library it comes from."""

import json
import math
from typing import Any


def as_text(value: Any) -> str:
    """A typed value as a csv file would hold it; lists and objects stay JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def cell_text(value: Any) -> str:
    """The same for a value of numpy, pandas or polars; a missing one is empty."""
    if isinstance(value, str):
        return str(value)  # numpy's strings as Python's
    if is_missing(value):
        return ""
    for plain in ("tolist", "to_list"):  # numpy's numbers and arrays; polars' lists
        if hasattr(value, plain):
            return as_text(getattr(value, plain)())
    return as_text(value)


def is_missing(value: Any) -> bool:
    """None, a NaN, or what a library has in their place (pandas' NA and NaT)."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and math.isnan(value)
