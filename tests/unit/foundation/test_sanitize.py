"""What leaves weft is plain text: for terminals, spreadsheets and model cards."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.foundation.sanitize import CONTROL, for_cell, for_code, for_markdown, for_terminal


@pytest.mark.parametrize(
    "code", ["\x1b]0;title\x07", "\x1b[2J", "\x9b31m", "\r", "\x08", "\x7f", "\u202e", "\u2066", "\u2028"]
)
def test_control_characters_do_not_reach_a_terminal(code: str) -> None:
    shown = for_terminal(f"a{code}b")
    assert not CONTROL.search(shown)
    assert shown.startswith("a\\u")


@given(st.text())
def test_plain_text_stays(text: str) -> None:
    shown = for_terminal(text)
    assert not CONTROL.search(shown)
    if not CONTROL.search(text):
        assert shown == text
    packed = json.dumps(text, ensure_ascii=False)
    assert json.loads(for_terminal(packed)) == text


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-cmd", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "|x", "%x", "=", "-1+1"])
def test_a_formula_becomes_text(text: str) -> None:
    assert for_cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["-1", "+1", "-1.5e-3", "-.5", "good", "", "a=b", "'=1"])
def test_other_cells_stay(text: str) -> None:
    assert for_cell(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("good", "good"),
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("a\n\n# title", "a \\# title"),
        ("a|b", "a\\|b"),
        ("[x](javascript:y)", "\\[x\\](javascript:y)"),
        ("\x1b[31m", "\\\\u001b\\[31m"),
        ("![](http://h/i.png)", "!\\[\\](http://h/i.png)"),
    ],
)
def test_a_model_card_gets_one_line_of_text(text: str, expected: str) -> None:
    assert for_markdown(text) == expected


def test_code_stays_code() -> None:
    assert for_code("a`b\n```\nc") == "a'b ''' c"
