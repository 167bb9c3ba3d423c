import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


@given(st.text("ab.@+- ", max_size=40))
def test_every_address_is_found(text: str) -> None:
    """Also right behind another one, as in a@b.org+c@d.org."""
    expected, count = re.subn(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", "[email]", text)
    counts: Counter[str] = Counter()
    assert mask(text, ("email",), counts) == expected
    assert counts["email"] == count


@pytest.mark.parametrize("unit", ["a", "1 ", "+1 ", "a@", "a.", "a@b.", "(12) 3", "www."])
def test_the_work_is_linear(unit: str) -> None:
    """A pattern that tries every start of a long run would work on this for hours."""
    text = unit * 400_000
    assert mask(text, ALL, Counter()).count(unit) <= text.count(unit)
