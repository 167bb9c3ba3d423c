"""Scores as a table: one block per task, the primary metric first."""

import math
from collections.abc import Mapping, Sequence

from weft.kinds.metrics import METRICS

Scores = Mapping[str, Mapping[str, float | None]]
"""task -> metric -> value, and `n` rows"""
HEADER = ["task", "metric", "score", "rows"]


def score_rows(scores: Scores, overall: float | None) -> list[list[str]]:
    """Return the cells task, metric, score and rows; the last row is the overall score."""
    rows = []
    for task, values in scores.items():
        for i, metric in enumerate(metric for metric in values if metric in METRICS):
            first = i == 0
            rows.append([task if first else "", metric, shown(values[metric]), f"{values['n']:,}" if first else ""])
    return [*rows, ["overall", "", shown(overall), ""]]


def score_text(scores: Scores, overall: float | None) -> str:
    """Format scores as plain text, with numbers right-aligned."""
    table = [HEADER, *score_rows(scores, overall)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join(_line(row, widths) for row in table)


def shown(score: float | None) -> str:
    """Format a score; a dash if it is undefined."""
    return "-" if score is None or math.isnan(score) else f"{score:.3f}"


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        cell.ljust(width) if i < 2 else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()
