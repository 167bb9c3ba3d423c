"""Takes personal data out of texts before anything else sees them."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Literal

MaskKind = Literal["email", "phone", "number", "link"]

# In the order in which they are applied: a link may hold an address, a telephone number is a long number too.
PATTERNS: dict[MaskKind, re.Pattern[str]] = {
    "link": re.compile(r"(?:https?://|www\.)[^\s<>\"']+", re.IGNORECASE),
    # what may stand before an @ is consumed even if none follows: to try each of its characters would be quadratic
    "email": re.compile(r"[\w.+-]+(@[\w-]+(?:\.[\w-]+)+)?"),
    # with a + or brackets, or in groups: 555-0199, (030) 123 45 67, +44 20 7946 0018; never a year, a score or a price
    "phone": re.compile(
        r"(?<![\w.,])(?:\+\d[\d ()./-]{6,}\d|\(\d{2,5}\)[ -]?\d[\d -]{4,}\d|\d{3,4}[ -]\d{3,4}(?:[ -]\d{2,6})*)(?!\w)"
    ),
    "number": re.compile(r"(?<![\w.])\d(?:[ -]?\d){7,}(?!\w)"),
}


def mask(text: str, kinds: Sequence[MaskKind], counts: Counter[str]) -> str:
    """The text with every find replaced by its kind in brackets, such as [email]; finds are counted."""
    for kind, pattern in PATTERNS.items():
        if kind in kinds:
            text = pattern.sub(partial(_replace, kind, counts), text)
    return text


def _replace(kind: MaskKind, counts: Counter[str], found: re.Match[str]) -> str:
    """A pattern's group, if it has one, tells a find from what only looked like one."""
    if None in found.groups():
        return found[0]
    counts[kind] += 1
    return f"[{kind}]"
