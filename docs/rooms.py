"""Draws rooms.svg, the import graph of the rooms, from the imports in the source: python docs/rooms.py

A room stands right below the lowest room that imports it. The ground, which every room may import, is a bar without
arrows; an arrow that follows from others is left out too. So the picture shows the shape and not every line of code.
"""

import sys
from collections.abc import Mapping
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the picture reads imports as the test of their direction does

from tests.contracts.test_rooms import SOURCE, imported, room_of  # noqa: E402

PICTURE = ROOT / "docs/rooms.svg"
WIDTH, ROW, BOX, HEIGHT = 860, 62, 92, 28
GROUND = "foundation"
AT_THE_TOP = {"__main__", "__init__"}
"""weft itself: it only forwards names"""

Graph = Mapping[str, set[str]]


def graph() -> dict[str, set[str]]:
    """room -> the rooms that its files import"""
    found: dict[str, set[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if room not in AT_THE_TOP:
            found.setdefault(room, set()).update(room_of(module) for module in imported(path))
    return {room: below - {room} - AT_THE_TOP for room, below in found.items()}


def reachable(rooms: Graph, start: str) -> set[str]:
    """Every room that `start` imports, also by way of others."""
    return {room for below in rooms[start] for room in {below} | reachable(rooms, below)}


def reduced(rooms: Graph) -> dict[str, set[str]]:
    """Without the imports that follow from others."""
    return {
        room: below - {further for other in below for further in reachable(rooms, other)}
        for room, below in rooms.items()
    }


def levels(rooms: Graph) -> dict[str, int]:
    """The row of each room, 0 at the top."""
    found: dict[str, int] = {}
    while len(found) < len(rooms):
        above = {room: {other for other in rooms if room in rooms[other]} for room in rooms if room not in found}
        ready = [room for room, importers in above.items() if importers <= set(found)]
        assert ready, f"rooms import each other in a circle: {sorted(above)}"
        found |= {room: 1 + max((found[one] for one in above[room]), default=-1) for room in ready}
    return found


def places(rooms: Graph) -> dict[str, tuple[float, float]]:
    """The middle of each room's box; in a row the rooms stand below those that import them."""
    row_of = levels(rooms)
    found: dict[str, tuple[float, float]] = {}
    for number in range(max(row_of.values()) + 1):
        above = {
            room: [found[one][0] for one in rooms if room in rooms[one]] for room in rooms if row_of[room] == number
        }
        row = sorted(above, key=lambda room: (sum(above[room]) / max(1, len(above[room])), room))
        gap = WIDTH / len(row)
        found |= {room: (gap * (i + 0.5), ROW * number + HEIGHT) for i, room in enumerate(row)}
    return found


def svg() -> str:
    rooms = {room: below - {GROUND} for room, below in reduced(graph()).items() if room != GROUND}
    at = places(rooms)
    ground = max(y for _, y in at.values()) + ROW
    height = ground + HEIGHT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" font-family="sans-serif" '
        'font-size="12" role="img">',
        "<title>The rooms of weft: a room imports those that its arrows point to</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#7a869a"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height:.0f}" fill="#fff"/>',
    ]
    for room, below in sorted(rooms.items()):
        for other in sorted(below):
            (x, y), (u, v) = at[room], at[other]
            start, end = y + HEIGHT / 2, v - HEIGHT / 2
            bend = (end - start) / 2
            lines.append(
                f'<path d="M{x:.1f} {start:.1f}C{x:.1f} {start + bend:.1f} {u:.1f} {end - bend:.1f} {u:.1f} {end:.1f}" '
                'fill="none" stroke="#7a869a" marker-end="url(#tip)"/>'
            )
    boxes = [(room, x, y, BOX) for room, (x, y) in sorted(at.items())]
    for room, x, y, width in [*boxes, (GROUND, WIDTH / 2, ground, WIDTH - BOX)]:
        lines.append(
            f'<rect x="{x - width / 2:.1f}" y="{y - HEIGHT / 2:.1f}" width="{width}" height="{HEIGHT}" rx="5" '
            'fill="#eef3fb" stroke="#3b5b92"/>'
            f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" fill="#1d2b45">{escape(room)}</text>'
        )
    return "\n".join([*lines, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(svg(), encoding="utf-8")
