"""Charts as plain data. `svg` draws them into the page, `figures` into files for a paper."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

# Okabe and Ito's colours, which colour-blind readers can tell apart; yellow is left out, it vanishes on white.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
# For what has an order: from blue to yellow and ever lighter, so that it reads alike with and without colour vision;
# neither end vanishes on white or on dark paper.
SCALE = ("#2a56a0", "#5a7aab", "#8a9699", "#bcae75", "#efc62f")


@dataclass(frozen=True)
class Colour:
    """A number of the palette, or a place from 0 to 1 on the scale of ordered things."""

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
        """the second round through the palette is told apart by dashes"""
        return self.place is None and self.number >= len(PALETTE)


@dataclass(frozen=True)
class Line:
    x: Values
    y: Values
    label: str = ""
    colour: Colour = Colour()
    dashed: bool = False
    dots: bool = False
    """mark each value"""
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
    """unique on the page; the file's name in a folder of figures"""
    title: str
    x_label: str
    y_label: str
    marks: Sequence[Mark]
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    note: str = ""
    group: str = ""
    """of charts with the same title, which of several views this is: "step" or "time" """


@dataclass(frozen=True)
class Entry:
    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    references: dict[str, float] = field(default_factory=dict)
    """other values to compare with, such as guessing"""
    colour: Colour = Colour()


@dataclass(frozen=True)
class EntryChart:
    """One value for each name, with its interval; a bar from zero, or a dot."""

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
    """Cells, coloured by value."""

    name: str
    title: str
    x_label: str
    y_label: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Values
    """[rows, columns] from 0 to 1, or from -1 to 1 if diverging; NaN leaves a cell empty"""
    texts: Sequence[Sequence[str]] | None = None
    """what stands in the cells"""
    diverging: bool = False
    x_range: tuple[float, float] | None = None
    """if the columns are stretches of a numeric axis, where it starts and ends"""
    note: str = ""
    group: str = ""


Chart = Plot | EntryChart | Grid


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers inside a range."""
    if not high > low:
        return [low]
    raw = (high - low) / about
    power = 10.0 ** np.floor(np.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
    return [float(n * step) + 0.0 for n in np.arange(first, last + 1)]  # + 0.0: never -0


def shown(value: float) -> str:
    """A tick's number, short."""
    if abs(value) >= 10_000:
        return f"{value / 1000:g}k"
    if value != 0 and abs(value) < 1e-3:
        return f"{value:.0e}".replace("e-0", "e-")
    return f"{round(value, 6):g}".replace("-", "−")


def digits(value: float, count: int) -> str:
    """So many digits after the point, with a true minus and no minus before a zero."""
    text = f"{value:.{count}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def limits(values: Sequence[Values], chosen: tuple[float, float] | None, pad: float = 0.04) -> tuple[float, float]:
    """The range of an axis: as chosen, or what the values need and a little more."""
    if chosen is not None:
        return chosen
    finite = np.concatenate([v[np.isfinite(v)] for v in values] or [np.zeros(0)])
    if not len(finite):
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    margin = (high - low) * pad or max(abs(high), 1.0) * 0.1
    return low - margin, high + margin


def plot_limits(plot: Plot) -> tuple[tuple[float, float], tuple[float, float]]:
    """The ranges of both axes of a plot."""
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
