from collections import Counter

import pytest

from weft.data.masking import PATTERNS, mask

ALL = tuple(PATTERNS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("write to jo.smith+x@mail.example.org today", "write to [email] today"),
        ("see https://example.org/a?b=c@d, or www.example.org.", "see [link] or [link]"),
        ("call +44 20 7946 0018 now", "call [phone] now"),
        ("call (030) 123 45 67 or 555-0199", "call [phone] or [phone]"),
        ("account 1234567890123", "account [number]"),
        ("card 1234 5678 9012 3456 expired", "card [phone] expired"),
        ("in 1999 it cost 12,500.50 and scored 8/10", "in 1999 it cost 12,500.50 and scored 8/10"),
        ("from 2010 to 2014, at 3.14159265358", "from 2010 to 2014, at 3.14159265358"),
        ("a1234567890 is a code", "a1234567890 is a code"),
    ],
)
def test_finds_are_replaced_and_nothing_else(text: str, expected: str) -> None:
    assert mask(text, ALL, Counter()) == expected


def test_only_the_kinds_asked_for_and_counted() -> None:
    counts: Counter[str] = Counter()
    text = "a@b.org c@d.org www.x.org"
    assert mask(text, ("email",), counts) == "[email] [email] www.x.org"
    assert counts == {"email": 2}
