"""Decision thresholds: the best one for a binary decision, and cross-fitted tuning on the dev rows.

A threshold that is chosen and scored on the same rows looks better than it is. So the score of a tuned task is
cross-fitted: the rows are split into folds, and the rows of a fold are decided by thresholds from the other folds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from weft.foundation.randomness import generator
from weft.kinds.metrics import METRICS
from weft.kinds.truth import Predictions, Thresholds, Truth

FOLDS = 5
LEAST = 10
"""minimum number of dev rows with the label, and without it; below it, the label keeps the threshold 0.5"""
DEFAULT = 0.5
INSIDE = 1e-9
"""thresholds are between INSIDE and 1 - INSIDE, so that probabilities of 0 and 1 are decided in the same way by all"""
Counts = NDArray[np.float64]


@dataclass(frozen=True)
class CandidateCounts:
    """Row counts for a number of candidate thresholds."""

    right: Counts
    """[candidates] true rows above the threshold"""
    above: Counts
    """[candidates] rows above the threshold"""
    true: float
    """true rows"""
    rows: float
    """all rows"""

    @property
    def right_below(self) -> Counts:
        """[candidates] false rows that are not above the threshold"""
        below: Counts = self.rows - self.true - (self.above - self.right)
        return below


def _ratio(part: Counts, whole: Counts) -> Counts:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


def _f1(at: CandidateCounts) -> Counts:
    return _ratio(2 * at.right, at.above + at.true)


def _macro_f1(at: CandidateCounts) -> Counts:
    others = _ratio(2 * at.right_below, 2 * at.rows - at.above - at.true)
    return (_f1(at) + others) / 2


def _accuracy(at: CandidateCounts) -> Counts:
    return (at.right + at.right_below) / at.rows


def _balanced_accuracy(at: CandidateCounts) -> Counts:
    parts = ((at.right, at.true), (at.right_below, at.rows - at.true))
    recalls: Counts = np.mean([part / whole for part, whole in parts if whole], axis=0)
    return recalls


def _mcc(at: CandidateCounts) -> Counts:
    joint = at.rows * at.right - at.above * at.true
    free = at.above * (at.rows - at.above) * at.true * (at.rows - at.true)
    return _ratio(joint, np.sqrt(free))


OBJECTIVES: dict[str, Callable[[CandidateCounts], Counts]] = {
    "accuracy": _accuracy,
    "balanced-accuracy": _balanced_accuracy,
    "f1": _macro_f1,
    "f1-positive": _f1,
    "mcc": _mcc,
}
"""metric of two classes -> its value at every candidate threshold"""


@dataclass(frozen=True)
class Threshold:
    """A threshold on the probability of yes in a binary decision: yes above it."""

    value: float
    score: float
    """the metric at this threshold"""


def best_threshold(scores: Predictions, yes: NDArray[np.bool_], by: str) -> Threshold:
    """Return the threshold with the best value of the metric `by`, one of `OBJECTIVES`.

    Of equally good thresholds, the one nearest to 0.5. It is halfway between two rows' probabilities, never equal to
    one of them.
    """
    levels, group = np.unique(scores, return_inverse=True)
    true = np.bincount(group, weights=yes)
    rows = np.bincount(group).astype(np.float64)
    # rows above each candidate threshold, from all rows to none
    right, above = (np.append(counts[::-1].cumsum()[::-1], 0.0) for counts in (true, rows))
    values = OBJECTIVES[by](CandidateCounts(right, above, float(true.sum()), float(rows.sum())))
    edges = np.concatenate([[levels[0] / 2], (levels[:-1] + levels[1:]) / 2, [(levels[-1] + 1) / 2]])
    best = np.flatnonzero(values >= values.max() - 1e-12)
    chosen = best[np.abs(edges[best] - DEFAULT).argmin()]
    return Threshold(float(np.clip(edges[chosen], INSIDE, 1 - INSIDE)), float(values[chosen]))


@dataclass(frozen=True)
class TunedThresholds:
    """Thresholds of a task, tuned on its dev rows, and the scores that show what tuning does."""

    final: Thresholds
    """[decisions] from all rows: the ones that are saved with the model"""
    cross_fitted: Thresholds
    """[n, decisions] thresholds for each row, from the rows of the other folds: the ones that are scored"""
    kept: NDArray[np.bool_]
    """[decisions] whether too few rows have the label, or lack it: it keeps 0.5"""
    default: dict[str, float]
    """scores without tuning"""
    naive: dict[str, float]
    """scores of the final thresholds on the rows that they are tuned on: optimistic"""


def tune(truth: Truth, metrics: Sequence[str], predictions: Predictions) -> TunedThresholds:
    """Tune the thresholds of a task with binary decisions; `metrics` has the primary metric first."""
    final = _fit(truth, predictions, metrics[0], np.arange(len(truth)))
    default, naive = (
        {name: METRICS[name].compute(replace(truth, thresholds=cuts), predictions) for name in metrics}
        for cuts in (None, final)
    )
    return TunedThresholds(final, _cross_fit(truth, predictions, metrics[0]), few_rows(truth), default, naive)


def few_rows(truth: Truth) -> NDArray[np.bool_]:
    """[decisions] whether too few rows have the label, or lack it, to tune its threshold"""
    yes = truth.kind.is_yes(truth.targets).sum(axis=0)
    few: NDArray[np.bool_] = np.minimum(yes, len(truth) - yes) < LEAST
    return few


def _cross_fit(truth: Truth, predictions: Predictions, primary: str) -> Thresholds:
    """[n, decisions] thresholds for the rows of each fold, tuned on the other folds.

    The folds depend only on the number of rows, so all seeds and models are scored on the same folds.
    """
    fold = generator(0, "thresholds", len(truth)).permutation(len(truth)) % FOLDS
    fitted = np.empty((len(truth), len(few_rows(truth))))
    for number in range(FOLDS):
        fitted[fold == number] = _fit(truth, predictions, primary, np.flatnonzero(fold != number))
    return fitted


def _fit(truth: Truth, predictions: Predictions, primary: str, rows: NDArray[np.int64]) -> Thresholds:
    """[decisions] thresholds tuned on some of the rows.

    Each label's threshold has the best F1 of the label; that of two classes has the best primary metric if the kind
    tunes for it, else the best F1 of the positive class.
    """
    by = primary if primary in truth.kind.tuned_for else "f1-positive"
    few = few_rows(truth)
    scores, yes = truth.kind.yes_scores(predictions[rows]), truth.kind.is_yes(truth.targets[rows])
    fitted = np.full(len(few), DEFAULT)
    for i in np.flatnonzero(~few & yes.any(axis=0)):
        if truth.positive == 0:  # the first class is positive: the same decision, asked the other way round
            fitted[i] = 1 - best_threshold(1 - scores[:, i], ~yes[:, i], by).value
        else:
            fitted[i] = best_threshold(scores[:, i], yes[:, i], by).value
    return fitted


def tuning_notes(task: str, truth: Truth) -> list[str]:
    """Return a note about labels whose thresholds cannot be tuned because too few rows have them, or lack them."""
    decisions = truth.kind.decisions(truth.names)
    names = [name for name, kept in zip(decisions, few_rows(truth), strict=True) if kept]
    if not names:
        return []
    return [
        f"tasks.{task}.thresholds: {', '.join(names)}: fewer than {LEAST} dev rows with the label or without it; "
        f"the threshold stays {DEFAULT:g}"
    ]
