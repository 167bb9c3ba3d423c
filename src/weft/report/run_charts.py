"""Charts of a run: scores, training curves and gradient conflicts."""

from collections.abc import Sequence

import numpy as np

from weft.kinds.metrics import title
from weft.report import learning
from weft.report.chart import Chart, Colour, Entry, EntryChart, Grid, Line, Mark, Plot, Rule, Values, digits
from weft.report.learning import Curve, PairConflict
from weft.report.scores import Scores
from weft.runs.reader import Run

VIEWS = ("step", "time")
PAIRS = 8
"""Maximum number of lines in the chart of conflicts."""
TRAIN, DEV = Colour(1), Colour(0)


def score_chart(scores: Scores) -> EntryChart:
    """Chart every task's primary metric with its interval, the random baseline and the untrained model."""
    rows = []
    for score in [*scores.primaries, scores.overall]:
        references = {"random baseline": score.guess, "untrained": score.before}
        rows.append(
            Entry(
                score.task if score.task == "overall" else f"{score.task} · {score.title}",
                score.value,
                score.interval.low if score.interval else None,
                score.interval.high if score.interval else None,
                {name: value for name, value in references.items() if value is not None},
                Colour(1) if score.task == "overall" else Colour(0),
            )
        )
    return EntryChart("scores", "Dev scores with 95 % intervals", "score", rows)


def clock(runs: Sequence[Run]) -> tuple[float, str]:
    """Return the unit of time that fits the longest run: its length in seconds, and its name."""
    longest = max(run.seconds for run in runs)
    if longest < 180:
        return 1.0, "seconds"
    return (60.0, "minutes") if longest < 3 * 3600 else (3600.0, "hours")


def place(curve: Curve, view: str, unit: tuple[float, str]) -> Values:
    """Return the x values of a curve."""
    return curve.steps if view == "step" else curve.seconds / unit[0]


def x_label(view: str, unit: tuple[float, str]) -> str:
    return "optimizer step" if view == "step" else unit[1]


def learning_charts(run: Run) -> list[Chart]:
    unit = clock([run])
    charts: list[Chart] = []
    for view in VIEWS:
        marks: list[Mark] = [
            _line(learning.overall_curve(run), view, unit, "dev", DEV, dots=True),
            *_best(run, view, unit),
        ]
        if len(run.evaluations) > 1:  # a curve needs at least two values
            name = f"overall-by-{view}"
            charts.append(Plot(name, "Overall score", x_label(view, unit), "overall", marks, group=view))
        for task, metric in run.primary().items():
            found = learning.curves(run, task, metric)
            loss = [
                Line(place(found.train_loss, view, unit), found.train_loss.values, "", TRAIN, is_faint=True),
                _line(found.train_trend, view, unit, "train", TRAIN),
                _line(found.dev_loss, view, unit, "dev", DEV, dots=True),
            ]
            score = [
                _line(found.train_score, view, unit, "train sample", TRAIN, dots=True),
                _line(found.dev_score, view, unit, "dev", DEV, dots=True),
            ]
            for what, label, lines in (("loss", "loss", loss), ("score", title(metric), score)):
                kept = [line for line in lines if len(line.x)]
                if max((len(line.x) for line in kept), default=0) > 1:
                    charts.append(
                        Plot(
                            f"{task}-{what}-by-{view}",
                            f"{task}: {label}",
                            x_label(view, unit),
                            label,
                            [*kept, *_best(run, view, unit)],
                            group=view,
                        )
                    )
    return charts


def _line(curve: Curve, view: str, unit: tuple[float, str], label: str, colour: Colour, *, dots: bool = False) -> Line:
    return Line(place(curve, view, unit), curve.values, label, colour, dots=dots)


def _best(run: Run, view: str, unit: tuple[float, str]) -> list[Rule]:
    """Mark the best checkpoint."""
    if run.selected is None:
        return []
    return [Rule(x=run.selected.step if view == "step" else run.selected.seconds / unit[0], label="best")]


def sharing_charts(run: Run) -> list[Chart]:
    """Chart which tasks each step trains, their weights, the learning rate and gradient conflicts."""
    charts: list[Chart] = []
    tasks = run.task_names
    if run.steps:
        last = float(run.steps_done)
        charts.append(
            Grid(
                "fed",
                "Tasks per step",
                "optimizer step",
                "",
                tasks,
                [],
                learning.strip(run),
                x_range=(0.0, last),
                note="Colour intensity: the share of steps that train the task.",
            )
        )
        weights = [
            Line(curve.steps, curve.values, task, Colour(i))
            for i, task in enumerate(tasks)
            if len((curve := learning.curves(run, task, "").weight).steps)
        ]
        if weights:
            charts.append(Plot("weights", "Weight of each task's loss", "optimizer step", "weight", weights))
        rate = learning.rate_curve(run)
        charts.append(
            Plot("rate", "Learning rate", "optimizer step", "rate", [Line(rate.steps, rate.values, colour=Colour(6))])
        )
    return charts + conflict_charts(run, learning.conflicts(run))


def conflict_charts(run: Run, pairs: Sequence[PairConflict]) -> list[Chart]:
    if not pairs:
        return []
    tasks = run.task_names
    means = np.full((len(tasks), len(tasks)), np.nan)
    for pair in pairs:
        i, j = (tasks.index(task) for task in pair.tasks)
        means[i, j] = means[j, i] = pair.mean
    worst = sorted(pairs, key=lambda pair: pair.mean)[:PAIRS]
    lines = [
        Line(pair.curve.steps, pair.curve.values, " / ".join(pair.tasks), Colour(i)) for i, pair in enumerate(worst)
    ]
    some = f"The {PAIRS} pairs with the lowest mean, of {len(pairs)}." if len(pairs) > PAIRS else ""
    note = "Cosine similarity between the tasks' gradients on the body: below 0, they conflict."
    charts: list[Chart] = [
        Grid(
            "conflicts", "Gradient conflicts, mean", "", "", tasks, tasks, means, _two(means), diverging=True, note=note
        ),
        Plot(
            "conflicts-over-time",
            "Gradient conflicts over time",
            "optimizer step",
            "cosine",
            [*lines, Rule(y=0.0)],
            note=some,
        ),
    ]
    by_layer = learning.conflicts_by_layer(run)
    if by_layer is not None:
        parts, names, values = by_layer
        columns = [name.replace("|", " / ") for name in names]
        charts.append(
            Grid(
                "conflicts-by-layer", "Conflicts by layer", "", "", parts, columns, values, _two(values), diverging=True
            )
        )
    return charts


def _two(values: Values) -> list[list[str]]:
    return [["" if v != v else digits(v, 2) for v in row] for row in values]
