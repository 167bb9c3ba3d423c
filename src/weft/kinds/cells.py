"""Parsing of label cells, for all kinds of labels."""

import ast
import json
import math
import re
from contextlib import suppress

FLAGS = {"0": False, "1": True, "false": False, "true": True, "no": False, "yes": True}


def canonical(label: str) -> str:
    """Normalize a label: `1.0` becomes `1`, and surrounding whitespace is removed."""
    text = label.strip()
    value = as_float(text)
    if value is not None and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return text


def divide(label: str) -> list[str]:
    """Split a multilabel cell: a JSON or Python list, or labels separated by , ; or |.

    An empty cell has no labels.
    """
    if label.lstrip().startswith("["):
        for read in (json.loads, ast.literal_eval):
            with suppress(ValueError, SyntaxError, MemoryError, RecursionError):  # a label that starts with a bracket
                return [canonical(str(name)) for name in read(label.strip())]
    return [canonical(part) for part in re.split(r"[,;|]", label) if part.strip()]


def as_flag(cell: str) -> bool | None:
    """Parse a cell of a 0/1 column; None if it is neither true nor false."""
    return FLAGS.get(canonical(cell).lower())


def as_float(text: str) -> float | None:
    """Parse a finite number; None if the text is not one."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
