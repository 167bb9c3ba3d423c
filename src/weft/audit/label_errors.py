"""Probable label errors in train: cross-validated predictions from frozen features, judged by the kind of label."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.data.dataset import Dataset
from weft.foundation.randomness import generator
from weft.kinds.metrics import score
from weft.kinds.noise import Features, Folds
from weft.kinds.truth import Predictions

FOLDS = 5
FEWEST = 20
"""With fewer train rows, held-out predictions say nothing."""


@dataclass(frozen=True)
class LabelErrors:
    """The rows of a train set whose labels are probably wrong, most suspicious first."""

    rows: NDArray[np.int64]
    quality: NDArray[np.float64]
    """[n] label quality of these rows"""
    suggestions: list[str]
    metric: str
    """the primary metric of the kind"""
    score: float
    """its value for the held-out predictions against the given labels"""


def label_errors(train: Dataset, features: Features, clusters: NDArray[np.int64], seed: int) -> LabelErrors:
    """Return the probable label errors; rows of one cluster are held out together."""
    labels, kind = train.labels, train.labels.kind
    folds = deal_folds(kind.groups(labels, train.targets), clusters, seed)
    predictions: Predictions = kind.cross_predict(labels, train.targets, features, folds)
    suspects = kind.suspects(train.targets, predictions)
    rows = np.flatnonzero(suspects.flagged)
    rows = rows[np.argsort(suspects.quality[rows], kind="stable")]
    decided = kind.decide(labels.in_units(predictions))
    metric = kind.default_metrics[0]
    return LabelErrors(
        rows,
        suspects.quality[rows],
        [kind.shown(labels.names, decided[row]) for row in rows],
        metric,
        score(labels, [metric], train.targets, predictions)[metric],
    )


def deal_folds(groups: NDArray[np.int64], clusters: NDArray[np.int64], seed: int) -> Folds:
    """[n] folds, stratified by label group. All rows of a cluster are in one fold: a repeated text is no evidence."""
    _, first, place = np.unique(clusters, return_index=True, return_inverse=True)
    shuffled = generator(seed, "audit folds").permutation(len(first))
    order = shuffled[np.argsort(groups[first[shuffled]], kind="stable")]
    folds = np.empty(len(first), dtype=np.int64)
    folds[order] = np.arange(len(order)) % FOLDS
    return folds[place]
