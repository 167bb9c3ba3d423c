"""What the texts in label columns mean, whatever the kind of label."""

import ast
import json
import math
import re
from contextlib import suppress

FLAGS = {"0": False, "1": True, "false": False, "true": True, "no": False, "yes": True}


def canonical(label: str) -> str:
    """Labels that mean the same are spelt the same: `1.0` is `1`, and blanks around do not count."""
    text = label.strip()
    value = as_float(text)
    if value is not None and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return text


def divide(label: str) -> list[str]:
    """The several labels of a multilabel row: a list as JSON or Python writes it, or divided by , ; or |.

    An empty text is none.
    """
    if label.lstrip().startswith("["):
        for read in (json.loads, ast.literal_eval):
            with suppress(ValueError, SyntaxError, MemoryError, RecursionError):  # a label that starts with a bracket
                return [canonical(str(name)) for name in read(label.strip())]
    return [canonical(part) for part in re.split(r"[,;|]", label) if part.strip()]


def as_flag(cell: str) -> bool | None:
    """Whether a cell of a column of 0 and 1 is on, or None if it is neither."""
    return FLAGS.get(canonical(cell).lower())


def as_float(text: str) -> float | None:
    """A finite number, or None."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
