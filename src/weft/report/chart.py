"""Charts as plain data. `svg` draws them into the page, `figures` into files for a paper."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

# Okabe and Ito's palette, which is safe for colour-blind readers; without yellow, which is invisible on white.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
# For ordered values: from blue to yellow with increasing lightness, so that it is readable without colour vision;
# both ends are visible on light and dark backgrounds.
SCALE = ("#2a56a0", "#5a7aab", "#8a9699", "#bcae75", "#efc62f")


@dataclass(frozen=True)
class Colour:
    """An index into the palette, or a position from 0 to 1 on the scale for ordered values."""

    number: int = 0
    place: float | None = None

    @property
    def hex(self) -> str:
        if self.place is None:
            return PALETTE[self.number % len(PALETTE)]
        position = min(max(self.place, 0.0), 1.0) * (len(SCALE) - 1)
        low = min(int(position), len(SCALE) - 2)
        share = position - low
        ends = [[int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in SCALE[low : low + 2]]
        return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in zip(*ends, strict=True))

    @property
    def dashed(self) -> bool:
        """Whether lines are dashed: from the second pass through the palette on."""
        return self.place is None and self.number >= len(PALETTE)


@dataclass(frozen=True)
class Line:
    x: Values
    y: Values
    label: str = ""
    colour: Colour = Colour()
    dashed: bool = False
    dots: bool = False
    """Mark each value with a dot."""
    is_faint: bool = False


@dataclass(frozen=True)
class Dots:
    x: Values
    y: Values
    label: str = ""
    colour: Colour = Colour()


@dataclass(frozen=True)
class Bars:
    """A histogram."""

    edges: Values
    heights: Values
    label: str = ""
    colour: Colour = Colour()


@dataclass(frozen=True)
class Rule:
    """A thin reference line: at one x, at one y, or the diagonal."""

    x: float | None = None
    y: float | None = None
    label: str = ""


Mark = Line | Dots | Bars | Rule


@dataclass(frozen=True)
class Plot:
    """Two axes and marks between them."""

    name: str
    """Unique on the page; also the name of the file that `--figures` writes."""
    title: str
    x_label: str
    y_label: str
    marks: Sequence[Mark]
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    note: str = ""
    group: str = ""
    """View that this chart belongs to, if the page can switch its x axis: "step" or "time"."""


@dataclass(frozen=True)
class Entry:
    """One row of an EntryChart."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    references: dict[str, float] = field(default_factory=dict)
    """Other values for comparison, such as the random baseline."""
    colour: Colour = Colour()


@dataclass(frozen=True)
class EntryChart:
    """One value per name with its interval, drawn as a bar from zero or as a dot."""

    name: str
    title: str
    x_label: str
    entries: Sequence[Entry]
    bars: bool = False
    rule: float | None = None
    rule_label: str = ""
    note: str = ""
    group: str = ""


@dataclass(frozen=True)
class Grid:
    """A heat map."""

    name: str
    title: str
    x_label: str
    y_label: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Values
    """[rows, columns] from 0 to 1, or from -1 to 1 if diverging; the cell of a NaN is empty."""
    texts: Sequence[Sequence[str]] | None = None
    """Text of each cell."""
    diverging: bool = False
    x_range: tuple[float, float] | None = None
    """Start and end of the x axis, if the columns are bins of a numeric axis."""
    note: str = ""
    group: str = ""


Chart = Plot | EntryChart | Grid


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers inside a range."""
    if not high > low:
        return [low]
    raw = (high - low) / about
    power = 10.0 ** np.floor(np.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
    return [float(n * step) + 0.0 for n in np.arange(first, last + 1)]  # + 0.0: never -0


def shown(value: float) -> str:
    """Format the number of a tick."""
    if abs(value) >= 10_000:
        return f"{value / 1000:g}k"
    if value != 0 and abs(value) < 1e-3:
        return f"{value:.0e}".replace("e-0", "e-")
    return f"{round(value, 6):g}".replace("-", "−")


def digits(value: float, count: int) -> str:
    """Format a number with `count` decimals, a typographic minus and no minus before zero."""
    text = f"{value:.{count}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def limits(values: Sequence[Values], chosen: tuple[float, float] | None, pad: float = 0.04) -> tuple[float, float]:
    """Return the range of an axis: `chosen`, or the range of the values with padding."""
    if chosen is not None:
        return chosen
    finite = np.concatenate([v[np.isfinite(v)] for v in values] or [np.zeros(0)])
    if not len(finite):
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    margin = (high - low) * pad or max(abs(high), 1.0) * 0.1
    return low - margin, high + margin


def plot_limits(plot: Plot) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the ranges of both axes of a plot."""
    xs, ys = [], []
    for mark in plot.marks:
        if isinstance(mark, Bars):
            xs.append(mark.edges)
            ys.append(np.append(mark.heights, 0.0))
        elif isinstance(mark, (Line, Dots)):
            xs.append(mark.x)
            ys.append(mark.y)
    x = limits(xs, plot.x_range, pad=0.02)
    y = limits(ys, plot.y_range)
    if any(isinstance(mark, Bars) for mark in plot.marks) and plot.y_range is None:
        y = (0.0, y[1])
    return x, y


def entry_limits(chart: EntryChart) -> tuple[float, float]:
    values = [v for own in chart.entries for v in (own.value, own.low, own.high, *own.references.values())]
    found = [v for v in [*values, chart.rule] if v is not None and not math.isnan(v)]
    if chart.bars:
        found.append(0.0)
    return limits([np.array(found, dtype=np.float64)], None, pad=0.06) if found else (0.0, 1.0)
