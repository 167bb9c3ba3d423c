"""Takes personal data out of texts before anything else sees them."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

MaskKind = Literal["email", "phone", "number", "link"]

# In the order in which they are applied: a link may hold an address, a telephone number is a long number too.
PATTERNS: dict[MaskKind, re.Pattern[str]] = {
    "link": re.compile(r"(?:https?://|www\.)[^\s<>\"']+", re.IGNORECASE),
    "email": re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
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
            text, found = pattern.subn(f"[{kind}]", text)
            if found:
                counts[kind] += found
    return text
