"""Training curves and gradient conflicts of a run, from its log."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np

from weft.report.chart import Values
from weft.runs.reader import Run
from weft.runs.records import EvaluationRecord, Number, StepRecord

POINTS = 160
"""Maximum number of points of a curve; longer curves are averaged in bins."""
STRIP = 96
"""Maximum number of bins of steps in `strip`."""
Timed = TypeVar("Timed", StepRecord, EvaluationRecord)


@dataclass(frozen=True)
class Curve:
    steps: Values
    seconds: Values
    values: Values


@dataclass(frozen=True)
class Curves:
    """The training curves of one task."""

    train_loss: Curve
    """As logged during training, with dropout and regularizers."""
    train_trend: Curve
    """Moving average of `train_loss` over a twentieth of the run."""
    dev_loss: Curve
    dev_score: Curve
    train_score: Curve
    weight: Curve
    """Factor by which the weighting multiplies the task's gradient."""


def curves(run: Run, task: str, metric: str) -> Curves:
    train_loss = _thinned(_curve(run.steps, lambda record: record.losses.get(task)))
    return Curves(
        train_loss=train_loss,
        train_trend=_trend(train_loss),
        dev_loss=_curve(run.evaluations, lambda record: (record.losses or {}).get(task)),
        dev_score=_curve(run.evaluations, lambda record: record.dev_score(task, metric)),
        train_score=_curve(run.evaluations, lambda record: record.train_score(task, metric)),
        weight=_thinned(_curve(run.steps, lambda record: record.weights.get(task))),
    )


def overall_curve(run: Run) -> Curve:
    return _curve(run.evaluations, lambda record: record.overall)


def rate_curve(run: Run) -> Curve:
    return _thinned(_curve(run.steps, lambda record: record.lr))


def _curve(records: Sequence[Timed], value_of: Callable[[Timed], Number]) -> Curve:
    """Collect the value of every record that has it."""
    return _from_points([(r.step, r.seconds, value) for r in records if (value := value_of(r)) is not None])


def _from_points(points: Sequence[tuple[float, float, float]]) -> Curve:
    """Convert (step, seconds, value) points to a curve."""
    return Curve(*np.array(points, dtype=np.float64).reshape(-1, 3).T)


def _thinned(curve: Curve) -> Curve:
    if len(curve.steps) <= POINTS:
        return curve
    edges = np.linspace(0, len(curve.steps), POINTS + 1).astype(int)[:-1]
    sizes = np.diff(np.append(edges, len(curve.steps)))
    means = [np.add.reduceat(values, edges) / sizes for values in (curve.steps, curve.seconds, curve.values)]
    return Curve(*means)


def _trend(curve: Curve) -> Curve:
    """Return the moving average of a curve; its window is shorter at both ends."""
    reach = max(len(curve.values) // 40, 1)
    sums = np.concatenate([[0.0], curve.values.cumsum()])
    middle = np.arange(len(curve.values))
    low, high = np.maximum(middle - reach, 0), np.minimum(middle + reach + 1, len(curve.values))
    return Curve(curve.steps, curve.seconds, (sums[high] - sums[low]) / np.maximum(high - low, 1))


def strip(run: Run) -> Values:
    """Return the share of steps that train each task, per bin of steps: [tasks, bins]."""
    tasks = run.task_names
    fed = np.array([[task in record.losses for task in tasks] for record in run.steps], dtype=np.float64)
    fed = fed.reshape(-1, len(tasks))
    edges = np.unique(np.linspace(0, len(fed), min(STRIP, max(len(fed), 1)) + 1).astype(int))
    shares = [fed[a:b].mean(axis=0) for a, b in pairwise(edges)]
    return np.array(shares).reshape(-1, len(tasks)).T


@dataclass(frozen=True)
class PairConflict:
    """Cosine similarity between the gradients of two tasks on the body."""

    tasks: tuple[str, str]
    mean: float
    below_zero: float
    """Share of logged steps with a cosine similarity below 0."""
    steps: int
    curve: Curve


def conflicts(run: Run) -> list[PairConflict]:
    pairs = dict.fromkeys(pair for record in run.conflicts for pair in record.cosines)
    seconds = {record.step: record.seconds for record in run.steps}
    found = []
    for pair in pairs:
        cosines = {record.step: record.cosines.get(pair) for record in run.conflicts}
        curve = _from_points([(s, seconds.get(s, 0.0), cosine) for s, cosine in cosines.items() if cosine is not None])
        one, two = pair.split("|")
        shares = float((curve.values < 0).mean())
        found.append(PairConflict((one, two), float(curve.values.mean()), shares, len(curve.values), _thinned(curve)))
    return found


def conflicts_by_layer(run: Run) -> tuple[list[str], list[str], Values] | None:
    """Return parts of the body, pairs of tasks and the mean cosine [parts, pairs], or None if it was not logged."""
    records = [record for record in run.conflicts if record.layers]
    if not records:
        return None
    parts = list(dict.fromkeys(part for record in records for part in record.layers or {}))
    pairs = list(dict.fromkeys(pair for record in records for pair in record.cosines))
    values = np.full((len(parts), len(pairs)), np.nan)
    for i, part in enumerate(parts):
        for j, pair in enumerate(pairs):
            layers = [(record.layers or {}).get(part, {}) for record in records]
            seen = [cosine for own in layers if (cosine := own.get(pair)) is not None]
            if seen:
                values[i, j] = float(np.mean(seen))
    return parts, pairs, values
