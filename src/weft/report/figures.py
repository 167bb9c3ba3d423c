"""Writes the charts of the page as svg and png files for a paper, one column wide."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from weft.foundation.config import file_name
from weft.foundation.errors import UserError
from weft.report.chart import (
    Bars,
    Chart,
    Dots,
    EntryChart,
    Grid,
    Line,
    Plot,
    Rule,
    entry_limits,
    plot_limits,
    shown,
    ticks,
)
from weft.report.page import all_charts
from weft.runs.reader import Run

WIDTH = 3.4
"""In inches: one column of most journals."""
DPI = 300
STYLE: Any = {
    "font.size": 8,
    "axes.titlesize": 8,
    "legend.fontsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.linewidth": 0.4,
    "grid.color": "#dfe4e8",
    "svg.fonttype": "none",  # keep text as text
    "svg.hashsalt": "weft",  # equal charts give equal files
}
SOFT = "#5d6873"
THIN: Any = {"color": SOFT, "linestyle": ":", "linewidth": 0.8}
SINGLE = LinearSegmentedColormap.from_list("single", ["#ffffff", "#0072b2"])
DOUBLE = LinearSegmentedColormap.from_list("double", ["#d55e00", "#ffffff", "#0072b2"])


def write_figures(runs: Sequence[Run], folder: Path) -> int:
    """Write NAME.svg and NAME.png of every chart. Returns the number of charts."""
    charts = all_charts(runs)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for chart in charts:
            figure = draw_figure(chart)
            name = file_name(chart.name).replace("/", "-")
            with rc_context(STYLE):
                figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
                figure.savefig(folder / f"{name}.png", dpi=DPI)
    except OSError as error:
        raise UserError(f"--figures {folder}: cannot be written ({error.strerror})") from None
    return len(charts)


def draw_figure(chart: Chart) -> Figure:
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, _height(chart)), layout="constrained")
        axes = figure.add_subplot()
        axes.set_title(chart.title)
        if isinstance(chart, Plot):
            _plot(axes, chart)
        elif isinstance(chart, EntryChart):
            _entries(axes, chart)
        else:
            _grid(axes, chart)
    return figure


def _height(chart: Chart) -> float:
    if isinstance(chart, EntryChart):
        return 0.9 + 0.25 * len(chart.entries)
    if isinstance(chart, Grid):
        return min(max(1.2 + 0.25 * len(chart.rows), 1.4), 6.0)
    return 2.5


def _plot(axes: Axes, chart: Plot) -> None:
    for mark in chart.marks:
        if isinstance(mark, Rule):
            if mark.x is not None:
                axes.axvline(mark.x, **THIN)
            if mark.y is not None:
                axes.axhline(mark.y, **THIN)
            continue
        colour, label = mark.colour.hex, mark.label or "_"
        if isinstance(mark, Line):
            style = "--" if mark.dashed or mark.colour.dashed else "-"
            alpha = 0.3 if mark.is_faint else 1.0
            dot = "o" if mark.dots else None
            axes.plot(mark.x, mark.y, style, color=colour, label=label, alpha=alpha, linewidth=1.1, marker=dot, ms=2.5)
        elif isinstance(mark, Dots):
            axes.scatter(mark.x, mark.y, s=5, color=colour, label=label, alpha=0.6, linewidths=0)
        elif isinstance(mark, Bars):
            axes.stairs(mark.heights, mark.edges, fill=True, color=colour, label=label, alpha=0.45)
    x, y = plot_limits(chart)
    axes.set(xlabel=chart.x_label, ylabel=chart.y_label, xlim=x, ylim=y)
    axes.grid(axis="y")
    if any(mark.label for mark in chart.marks if not isinstance(mark, Rule)):
        axes.legend(frameon=False)


def _entries(axes: Axes, chart: EntryChart) -> None:
    places = np.arange(len(chart.entries))[::-1]
    for place, row in zip(places, chart.entries, strict=True):
        if row.value is None or row.value != row.value:
            continue
        if chart.bars:
            axes.barh(place, row.value, height=0.6, color=row.colour.hex, alpha=0.75)
        else:
            axes.plot(row.value, place, "o", color=row.colour.hex, ms=4)
        if row.low is not None and row.high is not None:
            ink = "black" if chart.bars else row.colour.hex
            axes.plot([row.low, row.high], [place, place], color=ink, linewidth=1.2)
        for number, (name, value) in enumerate(row.references.items()):
            label = name if place == places[0] else "_"
            shape = "|" if number == 0 else "o"
            axes.plot(value, place, shape, color=SOFT, ms=6 - 2 * number, mfc="none", label=label)
    if chart.rule is not None:
        axes.axvline(chart.rule, **THIN, label=chart.rule_label or "_")
    axes.set_yticks(places, [row.label for row in chart.entries])
    axes.set(xlabel=chart.x_label, xlim=entry_limits(chart), ylim=(-0.6, len(chart.entries) - 0.4))
    axes.grid(axis="x")
    if axes.get_legend_handles_labels()[1]:
        axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.4, -0.35), ncols=2)


def _grid(axes: Axes, chart: Grid) -> None:
    rows, columns = chart.values.shape
    low = -1.0 if chart.diverging else 0.0
    axes.pcolormesh(np.ma.masked_invalid(chart.values), cmap=DOUBLE if chart.diverging else SINGLE, vmin=low, vmax=1.0)
    axes.invert_yaxis()
    axes.set_yticks(np.arange(rows) + 0.5, chart.rows)
    if chart.x_range is not None:
        start, end = chart.x_range
        marks = ticks(start, end)
        axes.set_xticks([(t - start) / (end - start) * columns for t in marks], [shown(t) for t in marks])
    else:
        axes.set_xticks(np.arange(columns) + 0.5, chart.columns, rotation=35, ha="right")
    if chart.texts is not None and columns <= 12:
        for i in range(rows):
            for j in range(columns):
                colour = "white" if abs(chart.values[i, j]) > 0.5 else "black"
                axes.text(j + 0.5, i + 0.5, chart.texts[i][j], ha="center", va="center", color=colour, fontsize=7)
    axes.tick_params(length=0)
    axes.set(xlabel=chart.x_label, ylabel=chart.y_label)
