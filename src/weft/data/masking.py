"""Masking of personal data in texts before any other processing."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Literal

MaskKind = Literal["email", "phone", "number", "link"]

# In order of application: a link may contain an email address, and a phone number is also a long number.
PATTERNS: dict[MaskKind, re.Pattern[str]] = {
    "link": re.compile(r"(?:https?://|www\.)[^\s<>\"']+", re.IGNORECASE),
    # the part before an @ is consumed even if no @ follows: retrying at each of its characters would be quadratic
    "email": re.compile(r"[\w.+-]+(@[\w-]+(?:\.[\w-]+)+)?"),
    # with a + or brackets, or in groups: 555-0199, (030) 123 45 67, +44 20 7946 0018; never a year, a score or a price
    "phone": re.compile(
        r"(?<![\w.,])(?:\+\d[\d ()./-]{6,}\d|\(\d{2,5}\)[ -]?\d[\d -]{4,}\d|\d{3,4}[ -]\d{3,4}(?:[ -]\d{2,6})*)(?!\w)"
    ),
    "number": re.compile(r"(?<![\w.])\d(?:[ -]?\d){7,}(?!\w)"),
}


def mask(text: str, kinds: Sequence[MaskKind], counts: Counter[str]) -> str:
    """Return the text with each match replaced by its kind in brackets, such as [email], and count the matches."""
    for kind, pattern in PATTERNS.items():
        if kind in kinds:
            text = pattern.sub(partial(_replace, kind, counts), text)
    return text


def _replace(kind: MaskKind, counts: Counter[str], found: re.Match[str]) -> str:
    """Return the replacement of a match. If the pattern has a group that did not match, the text is unchanged."""
    if None in found.groups():
        return found[0]
    counts[kind] += 1
    return f"[{kind}]"
