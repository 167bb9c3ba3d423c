"""Tables for the terminal."""

from collections.abc import Sequence

from rich.table import Table


def plain_table(*left: str, right: Sequence[str]) -> Table:
    """Create an empty table with left-aligned and right-aligned columns."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in left:
        table.add_column(name)
    for name in right:
        table.add_column(name, justify="right")
    return table
