"""Charts of one task's dev rows."""

import numpy as np
from numpy.typing import NDArray

from weft.evaluation.calibration import Reliability
from weft.kinds.counted import Confusion
from weft.report.chart import Bars, Chart, Colour, Dots, Grid, Line, Mark, Plot, Rule
from weft.report.classes import PrecisionRecall, Roc
from weft.report.numbers import NumberFindings
from weft.runs.reader import TaskRun

DOTS = 1200
"""Maximum number of dots, which would hide each other; larger sets are sampled at even intervals."""
CURVES = 8
"""Maximum number of curves that readers can distinguish."""
Labelled = tuple[str, Colour, NDArray[np.bool_]]
"""(label, colour, [n] whether a row has the label)"""


def confusion_charts(task: TaskRun, counts: Confusion) -> list[Chart]:
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    whole = [[f"{int(v):,}" for v in row] for row in counts]
    percent = [[f"{100 * v:.0f} %" for v in row] for row in shares]
    axes = ("predicted", "true", task.names, task.names)
    note = "Rows are the true classes."
    return [
        Grid(f"{task.name}-confusion", "Confusion matrix, rows", *axes, counts / counts.max(), whole, note=note),
        Grid(f"{task.name}-confusion-shares", "Confusion matrix, share of class", *axes, shares, percent, note=note),
    ]


def roc_chart(task: TaskRun, rocs: list[Roc], title: str) -> Plot:
    drawn = rocs if len(rocs) <= CURVES else sorted(rocs, key=lambda roc: roc.auc)[:CURVES]
    marks: list[Mark] = [
        Line(roc.false_positives, roc.true_positives, f"{roc.name} · AUC {roc.auc:.3f}", Colour(i))
        for i, roc in enumerate(drawn)
    ]
    return Plot(
        f"{task.name}-roc",
        title,
        "false positive rate",
        "true positive rate",
        [*marks, Line(np.array([0.0, 1.0]), np.array([0.0, 1.0]), "random", Colour(6), dashed=True)],
        x_range=(0.0, 1.0),
        y_range=(0.0, 1.02),
        note=f"Showing the {CURVES} lowest of {len(rocs)} by AUC." if drawn is not rocs else "",
    )


def precision_recall_chart(task: TaskRun, curves: list[PrecisionRecall]) -> Plot:
    """Chart precision against recall; a dot marks the decisions of the model."""
    first, *rest = curves
    worst = rest if len(rest) < CURVES else sorted(rest, key=lambda own: own.average_precision)[: CURVES - 1]
    marks: list[Mark] = []
    for i, own in enumerate([first, *worst]):
        at = [np.array([value]) for value in own.used]
        marks.append(Line(own.recall, own.precision, f"{own.name} · AP {own.average_precision:.3f}", Colour(i)))
        marks.append(Line(at[0], at[1], "", Colour(i), dots=True))
    dots = "Dots: the decisions by the thresholds that are saved with the model."
    return Plot(
        f"{task.name}-precision-recall",
        "Precision and recall",
        "recall",
        "precision",
        marks,
        x_range=(0.0, 1.0),
        y_range=(0.0, 1.02),
        note=dots if worst is rest else f"{dots} Showing the {CURVES - 1} lowest of {len(rest)} labels by AP.",
    )


def calibration_chart(task: TaskRun, bins: Reliability) -> Plot:
    shares = bins.rows / bins.rows.sum()
    edges = np.linspace(0, 1, 11)
    heights = np.zeros(10)
    heights[np.minimum((bins.confidence * 10).astype(int), 9)] = shares
    return Plot(
        f"{task.name}-calibration",
        "Calibration",
        "confidence",
        "share correct",
        [
            Bars(edges, heights, "share of rows", Colour(6)),
            Line(np.array([0.0, 1.0]), np.array([0.0, 1.0]), "ideal", Colour(6), dashed=True),
            Line(bins.confidence, bins.right, "model", Colour(0), dots=True),
        ],
        x_range=(0.0, 1.0),
        y_range=(0.0, 1.02),
    )


def number_charts(task: TaskRun, found: NumberFindings) -> list[Chart]:
    low = min(task.bounds[0], float(task.predictions.min()))
    high = max(task.bounds[1], float(task.predictions.max()))
    axis = (low - 0.02 * (high - low), high + 0.02 * (high - low))
    rows = _rows(task)
    note = _note(task, rows)
    return [
        Plot(
            f"{task.name}-scatter",
            "Predicted vs. true",
            "true",
            "predicted",
            [
                Line(np.array(axis), np.array(axis), "equal", Colour(6), dashed=True),
                Dots(task.targets[rows], task.predictions[rows], "dev rows", Colour(0)),
            ],
            x_range=axis,
            y_range=axis,
            note=note,
        ),
        Plot(
            f"{task.name}-residuals",
            "Residuals",
            "predicted − true",
            "share of rows",
            [Bars(found.residuals.edges, found.residuals.shares, "", Colour(0)), Rule(x=0.0)],
        ),
        Plot(
            f"{task.name}-distributions",
            "Distributions",
            "value",
            "share of rows",
            [
                Bars(found.true.edges, found.true.shares, "true", Colour(1)),
                Bars(found.predicted.edges, found.predicted.shares, "predicted", Colour(0)),
            ],
        ),
    ]


def plane_chart(task: TaskRun, labelled: list[Labelled]) -> list[Chart]:
    """Chart the first two principal components of the embeddings, coloured by label."""
    if task.plane is None or task.explained is None:
        return []
    rows = _rows(task)
    marks: list[Mark] = []
    for label, place, which in labelled:
        kept = rows[which[rows]]
        if len(kept):
            marks.append(Dots(task.plane[kept, 0], task.plane[kept, 1], label, place))
    what = "The difference |u − v| of the two texts' embeddings." if task.reading == "bi" else ""
    return [
        Plot(
            f"{task.name}-embeddings",
            "Embeddings by label (PCA)",
            f"first component, {task.explained[0]:.0%} of variance",
            f"second, {task.explained[1]:.0%}",
            marks,
            note=" ".join(part for part in (what, _note(task, rows)) if part),
        )
    ]


def _rows(task: TaskRun) -> np.ndarray:
    return np.unique(np.linspace(0, len(task.targets) - 1, DOTS).astype(int))


def _note(task: TaskRun, rows: np.ndarray) -> str:
    return f"{len(rows):,} of {len(task.targets):,} rows are shown." if len(rows) < len(task.targets) else ""
