"""Draws charts as inline SVG, in the colours of the page.

Every chart is as wide as a phone, so that text has the same size on phones and desktops. Names come from users: all
text goes through `escape`.
"""

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup, escape

from weft.report.chart import (
    Bars,
    Chart,
    Colour,
    Dots,
    EntryChart,
    Grid,
    Line,
    Mark,
    Plot,
    Rule,
    Values,
    digits,
    entry_limits,
    plot_limits,
    shown,
    ticks,
)

WIDTH = 360
HEIGHT = 224
MANY = 20
"""Maximum number of rows or columns of a grid with labels."""
LONGEST = 18
"""Maximum number of characters of a label next to a chart; the tooltip contains the whole name."""


def draw(chart: Chart) -> Markup:
    """Return the chart as an svg element."""
    if isinstance(chart, Plot):
        return _plot(chart)
    return _entries(chart) if isinstance(chart, EntryChart) else _grid(chart)


def legend(chart: Chart) -> list[tuple[str, str, str]]:
    """Return (kind of swatch, colour, label) of every labelled mark of a chart."""
    if isinstance(chart, Grid):
        return []
    if isinstance(chart, EntryChart):
        names = dict.fromkeys(name for row in chart.entries for name in row.references)
        shapes = {name: ("tick" if i == 0 else "ring") for i, name in enumerate(names)}
        first = [("dot", "var(--c0)", "trained")] if names else []
        mean = [("line", "var(--ink-soft)", chart.rule_label)] if chart.rule_label else []
        return [*first, *((shape, "var(--ink-soft)", name) for name, shape in shapes.items()), *mean]
    found = []
    for mark in chart.marks:
        if mark.label and not (isinstance(mark, Rule)):
            dashed = isinstance(mark, Line) and (mark.dashed or mark.colour.dashed)
            kind = "dash" if dashed else {Line: "line", Dots: "dot", Bars: "box"}[type(mark)]
            found.append((kind, _css(mark.colour), mark.label))
    return found


def _wide(names: Sequence[str]) -> float:
    """Estimate the width in pixels of the widest of these texts, in the widest of the usual fonts."""
    letters = {**dict.fromkeys("mwMW@%", 10.8), **dict.fromkeys("iljtfrI.,:;|'! ", 4.4)}
    return max((sum(letters.get(letter, 7.0) for letter in name) for name in names), default=0.0)


def _css(colour: Colour) -> str:
    return colour.hex if colour.place is not None else f"var(--c{colour.number % 7})"


def _short(name: str, letters: int = LONGEST) -> str:
    return name if len(name) <= letters else name[: letters - 1] + "…"


def _svg(title: str, height: float, parts: Sequence[str]) -> Markup:
    opening = f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}">'
    return Markup(opening + "".join(parts) + "</svg>")


def _text(x: float, y: float, text: str, *, anchor: str = "start", css: str = "", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{css}"{more}>{escape(text)}</text>'


def _named(x: float, y: float, name: str, *, anchor: str = "end", letters: int = LONGEST, more: str = "") -> str:
    """Return a label that may be truncated, with the whole name in its tooltip."""
    tip = f"<title>{escape(name)}</title>" if len(name) > letters else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{tip}{escape(_short(name, letters))}</text>'


class _Axes:
    """Maps the values of a plot to pixels."""

    def __init__(self, chart: Plot) -> None:
        (self.x0, self.x1), (self.y0, self.y1) = plot_limits(chart)
        self.y_ticks = ticks(self.y0, self.y1, 4)
        self.left, self.right = 10 + _wide([shown(tick) for tick in self.y_ticks]), WIDTH - 12.0
        self.top, self.bottom = 24.0, HEIGHT - 40.0

    def x(self, value: Values | float) -> Values:
        return np.asarray(self.left + (value - self.x0) / (self.x1 - self.x0) * (self.right - self.left))

    def y(self, value: Values | float) -> Values:
        return np.asarray(self.bottom - (value - self.y0) / (self.y1 - self.y0) * (self.bottom - self.top))


def _plot(chart: Plot) -> Markup:
    axes = _Axes(chart)
    parts = [_text(2, 12, chart.y_label, css="soft")]
    for tick in axes.y_ticks:
        y = float(axes.y(tick))
        parts.append(f'<path class="grid" d="M{axes.left:.1f} {y:.1f}H{axes.right:.1f}"/>')
        parts.append(_text(axes.left - 5, y + 4, shown(tick), anchor="end"))
    parts += [
        _text(float(axes.x(tick)), axes.bottom + 18, shown(tick), anchor="middle")
        for tick in ticks(axes.x0, axes.x1, 5)
    ]
    parts.append(_text((axes.left + axes.right) / 2, HEIGHT - 7, chart.x_label, anchor="middle", css="soft"))
    parts.append(f'<path class="axis" d="M{axes.left:.1f} {axes.bottom:.1f}H{axes.right:.1f}"/>')
    parts += [_mark(mark, axes) for mark in chart.marks]
    return _svg(chart.title, HEIGHT, parts)


def _mark(mark: Mark, axes: _Axes) -> str:
    if isinstance(mark, Rule):
        return _rule(mark, axes)
    colour = _css(mark.colour)
    if isinstance(mark, Dots):
        path = "".join(f"M{x:.0f} {y:.0f}h0" for x, y in zip(axes.x(mark.x), axes.y(mark.y), strict=True))
        return f'<path class="dots" stroke="{colour}" d="{path}"/>'
    if isinstance(mark, Bars):
        left, top = axes.x(mark.edges), axes.y(mark.heights)
        path = "".join(
            f"M{a:.1f} {axes.bottom:.1f}V{y:.1f}H{b:.1f}V{axes.bottom:.1f}Z"
            for a, b, y, height in zip(left[:-1] + 0.5, left[1:] - 0.5, top, mark.heights, strict=True)
            if height > 0
        )
        return f'<path class="bars" fill="{colour}" stroke="{colour}" d="{path}"/>'
    return _line(mark, axes, colour)


def _line(mark: Line, axes: _Axes, colour: str) -> str:
    keep = np.isfinite(mark.y)
    points = list(zip(axes.x(mark.x[keep]), axes.y(mark.y[keep]), strict=True))
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    dash = ' stroke-dasharray="4 3"' if mark.dashed or mark.colour.dashed else ""
    faint = ' stroke-opacity=".3"' if mark.is_faint else ""
    found = f'<path class="line"{faint} stroke="{colour}"{dash} d="{path}"/>' if len(points) > 1 else ""
    if mark.dots:
        for (x, y), at, value in zip(points, mark.x[keep], mark.y[keep], strict=True):
            tip = escape(f"{mark.label}: {value:.3f} at {at:g}")
            found += f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{colour}"><title>{tip}</title></circle>'
    return found


def _rule(rule: Rule, axes: _Axes) -> str:
    if rule.y is not None:
        y = float(axes.y(rule.y))
        return f'<path class="rule" d="M{axes.left:.1f} {y:.1f}H{axes.right:.1f}"/>'
    assert rule.x is not None
    x = float(axes.x(rule.x))
    anchor = "end" if x > WIDTH / 2 else "start"
    label = _text(x + (-4 if anchor == "end" else 4), axes.top + 2, rule.label, anchor=anchor, css="soft")
    return f'<path class="rule" d="M{x:.1f} {axes.top - 6:.1f}V{axes.bottom:.1f}"/>' + (label if rule.label else "")


def _entries(chart: EntryChart) -> Markup:
    low, high = entry_limits(chart)
    pitch = 26.0
    names = _wide([row.label for row in chart.entries])
    # labels go above their row if they would need more than a third of the width
    above = names > WIDTH / 3
    if above:
        pitch = 38.0
    left, right, top = (16.0 if above else 10 + names), WIDTH - 50.0, 8.0  # leaves room for half of a tick label
    bottom = top + pitch * len(chart.entries)

    def x(value: float) -> float:
        return left + (value - low) / (high - low) * (right - left)

    parts = []
    for tick in ticks(low, high, 4):
        parts.append(f'<path class="grid" d="M{x(tick):.1f} {top:.1f}V{bottom:.1f}"/>')
        parts.append(_text(x(tick), bottom + 14, shown(tick), anchor="middle"))
    if chart.rule is not None:
        parts.append(f'<path class="rule" d="M{x(chart.rule):.1f} {top:.1f}V{bottom:.1f}"/>')
    for i, row in enumerate(chart.entries):
        y = top + pitch * (i + 0.5) + (8 if above else 0)
        if above:
            parts.append(_named(2, y - 12, row.label, anchor="start", letters=44, more=' class="over"'))
        else:
            parts.append(_named(left - 7, y + 4, row.label))
        colour = _css(row.colour)
        for number, reference in enumerate(row.references.values()):
            if reference == reference:
                parts.append(_reference(x(reference), y, number))
        if row.value is None or row.value != row.value:
            parts.append(_text(right + 6, y + 4, "–"))
            continue
        at = x(row.value)
        if chart.bars:
            start = x(0.0)
            parts.append(
                f'<rect x="{min(start, at):.1f}" y="{y - 7:.1f}" width="{abs(at - start):.1f}" height="14" '
                f'fill="{colour}" fill-opacity=".75"/>'
            )
        if row.low is not None and row.high is not None:
            ink = "var(--ink)" if chart.bars else colour
            parts.append(f'<path class="span" stroke="{ink}" d="M{x(row.low):.1f} {y:.1f}H{x(row.high):.1f}"/>')
        if not chart.bars:
            parts.append(f'<circle cx="{at:.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"/>')
        parts.append(_text(right + 6, y + 4, digits(row.value, 3), css="strong"))
    parts.append(_text((left + right) / 2, bottom + 30, chart.x_label, anchor="middle", css="soft"))
    return _svg(chart.title, bottom + 36, parts)


def _reference(x: float, y: float, number: int) -> str:
    if number == 0:
        return f'<path class="tick" d="M{x:.1f} {y - 7:.1f}v14"/>'
    return f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'


def _grid(chart: Grid) -> Markup:
    rows, columns = chart.values.shape
    left = 10 + _wide([_short(name) for name in chart.rows]) if rows <= MANY else 10.0
    right, top = WIDTH - 8.0, 20.0 if chart.y_label else 6.0
    wide = (right - left) / max(columns, 1)
    tall = min(max(wide, 12.0), 30.0) if columns == rows else 22.0
    tall = tall if rows <= MANY else 300 / rows
    bottom = top + tall * rows
    parts = [_text(2, 12, chart.y_label, css="soft")] if chart.y_label else []
    for i in range(rows):
        y = top + tall * i
        if rows <= MANY:
            parts.append(_named(left - 6, y + tall / 2 + 4, chart.rows[i]))
        for j in range(columns):
            value = float(chart.values[i, j])
            if value == value:
                parts.append(_cell(chart, i, j, left + wide * j, y, wide, tall))
    parts.append(
        f'<rect class="frame" x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top:.1f}"/>'
    )
    end, below = _columns(chart, left, right, wide, bottom)
    parts += below
    if chart.x_label:
        parts.append(_text((left + right) / 2, end + 14, chart.x_label, anchor="middle", css="soft"))
        end += 20
    return _svg(chart.title, end + 2, parts)


def _cell(chart: Grid, i: int, j: int, x: float, y: float, wide: float, tall: float) -> str:
    value = float(chart.values[i, j])
    strength = min(abs(value), 1.0)
    colour = "var(--c1)" if chart.diverging and value < 0 else "var(--c0)"
    cell = (
        f'<rect x="{x:.2f}" y="{y:.1f}" width="{wide + 0.2:.2f}" height="{tall:.1f}" '
        f'fill="{colour}" fill-opacity="{0.04 + 0.92 * strength:.2f}"/>'
    )
    if chart.texts is None:
        return cell
    text = chart.texts[i][j]
    tip = f"<title>{escape(f'{chart.rows[i]} → {chart.columns[j]}: {text}')}</title>"
    key = f' data-key="{escape(chart.name)}/{i}/{j}"'
    if wide >= _wide([text]) + 2 and tall >= 13:
        css = "inverse" if strength > 0.5 else ""
        cell += _text(x + wide / 2, y + tall / 2 + 4, text, anchor="middle", css=css, more=key)
    return f"<g>{tip}{cell}</g>"


def _columns(chart: Grid, left: float, right: float, wide: float, bottom: float) -> tuple[float, list[str]]:
    """Return the bottom of the column labels and their elements; labels are rotated if they would overlap."""
    if chart.x_range is not None:
        low, high = chart.x_range
        at = [(left + (t - low) / (high - low) * (right - left), shown(t)) for t in ticks(low, high) if high > low]
        return bottom + 16, [_text(x, bottom + 14, name, anchor="middle") for x, name in at]
    if _wide(chart.columns) + 6 <= wide:
        names = [
            _text(left + wide * (j + 0.5), bottom + 14, name, anchor="middle") for j, name in enumerate(chart.columns)
        ]
        return bottom + 16, names
    if len(chart.columns) > MANY:  # labels would overlap; tooltips of the cells contain them
        return bottom, []
    names = []
    for j, name in enumerate(chart.columns):
        x, y = left + wide * (j + 0.5) + 4, bottom + 10
        names.append(_named(x, y, name, more=f' transform="rotate(-38 {x:.1f} {y:.1f})"'))
    return bottom + 12 + _wide([_short(name) for name in chart.columns]) * 0.62, names
