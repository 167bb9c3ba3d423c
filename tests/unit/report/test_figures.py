"""Every kind of chart as a figure for a paper."""

from pathlib import Path

from tests.runs import TASKS, write_run
from weft.report.figures import draw_figure
from weft.report.page import all_charts
from weft.runs.reader import read_run


def test_every_chart_can_be_drawn_and_says_what_its_axes_are(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", {name: TASKS[name] for name in ("mood", "near")}))
    charts = all_charts([run])
    assert len({chart.name for chart in charts}) == len(charts) > 20
    for chart in charts:
        (axes,) = draw_figure(chart).axes
        assert axes.get_title() == chart.title
        if chart.name not in (
            "fed",
            "conflicts",
            "conflicts-by-layer",
        ):  # tasks and layers say themselves what they are
            assert axes.get_xlabel(), chart.name
