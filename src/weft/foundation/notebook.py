"""Small HTML tables for notebooks: everything is escaped, and nothing is loaded from anywhere."""

import html
from collections.abc import Iterable, Sequence

from weft.foundation.sanitize import for_terminal


def html_table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table under a title, as `_repr_html_` returns it."""
    head = "".join(f"<th>{_escaped(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{_escaped(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><caption>{_escaped(title)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _escaped(cell: object) -> str:
    """Labels and names may come from strangers: no markup, no characters that turn the direction of what is read."""
    return html.escape(for_terminal(str(cell)))
