"""Draws forest.svg: the difference of every claim with its interval, per body. `results.py` calls it.

The file has no date and no random name, so the same results give the same bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

COLOURS = {"supported": "#0072b2", "refuted": "#d55e00", "undecided": "#7f7f7f"}
LIMIT = 0.3
"""Differences are drawn from -LIMIT to LIMIT; an interval that goes on ends in an arrow."""
WIDTH, LEFT, RIGHT, ROW, TOP = 980, 560, 70, 18, 46


@dataclass(frozen=True)
class ForestRow:
    """One claim on one body."""

    label: str
    verdict: str
    difference: float | None
    low: float | None
    high: float | None
    margin: float
    """Non-inferiority margin: the claim is decided at minus this difference."""


def picture(rows: Sequence[ForestRow]) -> str:
    """Return the forest plot as SVG."""
    height = TOP + ROW * len(rows) + 46
    bottom = TOP + ROW * len(rows) + 4
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        "<title>Differences of all claims with 95 % intervals</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        *_legend(),
    ]
    for tick in (-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3):
        colour, word = ("#e0e0e0", f"{tick:+.1f}") if tick else ("#333333", "0")
        parts.append(f'<line x1="{_x(tick)}" y1="{TOP - 8}" x2="{_x(tick)}" y2="{bottom}" stroke="{colour}"/>')
        parts.append(f'<text x="{_x(tick)}" y="{bottom + 14}" text-anchor="middle">{word}</text>')
    for place, row in enumerate(rows):
        parts += _row(row, TOP + ROW * place + ROW // 2)
    words = "difference: the arm that is claimed to be better minus the other; a short tick is a margin"
    parts.append(f'<text x="{_x(0)}" y="{bottom + 32}" text-anchor="middle">{words}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _legend() -> list[str]:
    parts = []
    for place, (verdict, colour) in enumerate(COLOURS.items()):
        x = 14 + 110 * place
        parts.append(f'<circle cx="{x}" cy="18" r="5" fill="{colour}"/>')
        parts.append(f'<text x="{x + 10}" y="22">{verdict}</text>')
    return parts


def _row(row: ForestRow, y: int) -> list[str]:
    colour = COLOURS[row.verdict]
    parts = [f'<text x="{LEFT - 12}" y="{y + 4}" text-anchor="end">{escape(row.label)}</text>']
    if row.margin:
        x = _x(-row.margin)
        parts.append(f'<line x1="{x}" y1="{y - 5}" x2="{x}" y2="{y + 5}" stroke="#333333"/>')
    if row.difference is None:
        return [*parts, f'<text x="{_x(0) + 8}" y="{y + 4}" fill="{colour}">not estimated</text>']
    if row.low is not None and row.high is not None:
        left, right = _x(row.low), _x(row.high)
        parts.append(f'<line x1="{left}" y1="{y}" x2="{right}" y2="{y}" stroke="{colour}" stroke-width="2"/>')
        for end, beyond, way in ((left, row.low < -LIMIT, -1), (right, row.high > LIMIT, 1)):
            if beyond:
                points = f"{end + 7 * way},{y} {end},{y - 4} {end},{y + 4}"
                parts.append(f'<polygon points="{points}" fill="{colour}"/>')
    parts.append(f'<circle cx="{_x(row.difference)}" cy="{y}" r="4" fill="{colour}"/>')
    return [*parts, f'<text x="{WIDTH - 8}" y="{y + 4}" text-anchor="end" fill="{colour}">{row.difference:+.3f}</text>']


def _x(value: float) -> float:
    share = (min(max(value, -LIMIT), LIMIT) + LIMIT) / (2 * LIMIT)
    return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)
