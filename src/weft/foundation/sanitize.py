"""Sanitizers for output. Labels, texts and names are untrusted and must stay plain text."""

import html
import re

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
"""Characters that move a terminal's cursor, change its colours or title, or reverse the text direction."""
FORMULA = re.compile(r"[=+\-@\t\r\n|%]")
"""Characters that start a formula in spreadsheets."""
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
MARKDOWN = re.compile(r"([\\`*_\[\]|#~])")


def for_terminal(text: str) -> str:
    """Replace control characters by escapes such as \\u001b; line breaks and tabs stay. JSON keeps its value."""
    return CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def for_cell(text: str) -> str:
    """Prefix a csv field with a quote if a spreadsheet would run it as a formula; numbers stay."""
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text


def for_markdown(text: str) -> str:
    """Format text as one line for a model card, with HTML and Markdown escaped."""
    line = for_terminal(" ".join(text.split()))
    return html.escape(MARKDOWN.sub(r"\\\1", line), quote=False)


def for_code(text: str) -> str:
    """Format text as one line for inline code, which only a backtick can end."""
    return for_terminal(" ".join(text.split())).replace("`", "'")
