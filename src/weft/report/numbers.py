"""Statistics of regression tasks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.runs.reader import TaskRun

BINS = 20
NEAR = 0.2
"""Tolerance, as a share of the range of labels."""


@dataclass(frozen=True)
class Histogram:
    edges: NDArray[np.float64]
    shares: NDArray[np.float64]
    """Share of all rows in each bin."""


@dataclass(frozen=True)
class NumberFindings:
    mean_error: float
    """Mean of predicted - true: above 0, the model overestimates."""
    absolute_error: float
    near: float
    """Share of rows with an error of at most a fifth of the range."""
    width: float
    """A fifth of the range, in the unit of the labels."""
    true: Histogram
    predicted: Histogram
    residuals: Histogram


def find(task: TaskRun) -> NumberFindings:
    gaps = task.predictions - task.targets
    low, high = task.bounds
    width = NEAR * (high - low)
    true = np.asarray(task.targets, dtype=np.float64)
    everything = np.concatenate([true, task.predictions])
    edges = np.linspace(min(low, everything.min()), max(high, everything.max()), BINS + 1)
    return NumberFindings(
        mean_error=float(gaps.mean()),
        absolute_error=float(np.abs(gaps).mean()),
        near=float((np.abs(gaps) <= width + 1e-9).mean()),
        width=width,
        true=_histogram(true, edges),
        predicted=_histogram(task.predictions, edges),
        residuals=_histogram(gaps, np.linspace(gaps.min() - 1e-9, gaps.max() + 1e-9, BINS + 1)),
    )


def _histogram(values: NDArray[np.float64], edges: NDArray[np.float64]) -> Histogram:
    counts, _ = np.histogram(values, edges)
    return Histogram(edges, counts / len(values))
