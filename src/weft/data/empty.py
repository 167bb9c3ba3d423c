"""Empty texts: one rule for training, evaluation and prediction."""

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from weft.foundation.errors import UserError

OnEmpty = Literal["error", "skip", "keep"]
"""error: raise; skip: ignore the row, or predict nothing for it; keep: read it as a text without words."""


def is_empty(text: str) -> bool:
    """Return whether a text is empty or contains only whitespace."""
    return not text.strip()


def empty_column(values: Mapping[str, str], columns: Sequence[str]) -> str | None:
    """Return the first empty text column of a row, or None."""
    return next((name for name in columns if is_empty(values[name])), None)


def answerable(sides: Sequence[Sequence[str]], rule: OnEmpty, names: Sequence[str] = ("texts", "texts2")) -> list[int]:
    """Return the rows to predict. `sides` contains the texts of each text column, `names` their names in messages."""
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
    """Return the rule that a user names, or None for the rule of the task. Reject other names."""
    for known in get_args(OnEmpty):
        if rule == known:
            return known  # type: ignore[no-any-return]
    if rule is None:
        return None
    raise UserError(f"{where} {rule}: expected error, skip or keep")
