"""Empty texts: one rule for training, evaluation and prediction."""

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from weft.foundation.errors import UserError

OnEmpty = Literal["error", "skip", "keep"]
"""fail with a message; leave the row out, or without an answer; read it as a text without words"""


def is_empty(text: str) -> bool:
    """Whether a text has nothing but blanks."""
    return not text.strip()


def empty_column(values: Mapping[str, str], columns: Sequence[str]) -> str | None:
    """The first of a row's text columns that is empty."""
    return next((name for name in columns if is_empty(values[name])), None)


def answerable(sides: Sequence[Sequence[str]], rule: OnEmpty, names: Sequence[str] = ("texts", "texts2")) -> list[int]:
    """The rows that get an answer; `sides` holds the texts of each text column, which messages call `names`."""
    rows = range(len(sides[0]))
    if rule == "keep":
        return list(rows)
    empty = {
        row: name
        for name, side in reversed(list(zip(names, sides, strict=False)))
        for row in rows
        if is_empty(side[row])
    }
    if empty and rule == "error":
        row = min(empty)
        more = f" (and {len(empty) - 1:,} more)" if len(empty) > 1 else ""
        raise UserError(
            f'{empty[row]}[{row}]: is empty{more}, expected a text; on_empty = "skip" leaves such rows without an '
            'answer, "keep" answers them'
        )
    return [row for row in rows if row not in empty]


def require_rule(rule: str | None, where: str) -> OnEmpty | None:
    """A rule as a user names it, or None for the task's own."""
    for known in get_args(OnEmpty):
        if rule == known:
            return known  # type: ignore[no-any-return]
    if rule is None:
        return None
    raise UserError(f"{where} {rule}: expected error, skip or keep")
