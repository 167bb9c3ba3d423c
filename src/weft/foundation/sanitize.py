"""One sanitizer for what leaves weft. Labels, texts and names may come from strangers, and must stay plain text."""

import html
import re

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
"""what moves a terminal's cursor, changes its colours or title, or turns the direction of what is read"""
FORMULA = re.compile(r"[=+\-@\t\r\n|%]")
"""what spreadsheets take for the start of a formula"""
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
MARKDOWN = re.compile(r"([\\`*_\[\]|#~])")


def for_terminal(text: str) -> str:
    """Control characters become escapes such as \\u001b; line breaks and tabs stay. JSON keeps its value."""
    return CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def for_cell(text: str) -> str:
    """A csv field that no spreadsheet runs: a quote comes before what would be a formula; numbers stay."""
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text


def for_markdown(text: str) -> str:
    """One line of text in a model card, without HTML or markup of its own."""
    line = for_terminal(" ".join(text.split()))
    return html.escape(MARKDOWN.sub(r"\\\1", line), quote=False)


def for_code(text: str) -> str:
    """The same between backticks, where nothing but a backtick ends it."""
    return for_terminal(" ".join(text.split())).replace("`", "'")
