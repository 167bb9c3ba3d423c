"""Ranks of matches among candidates, and the metrics of retrieval.

The candidates of a split are its distinct second texts. A row's first text is the anchor, its second text a correct
candidate of this anchor; an anchor with several rows has several correct candidates. The anchor's own text is no
candidate, unless it is the row's second text.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from weft.kinds.counted import Numbers
from weft.kinds.forms import Form, Means
from weft.kinds.truth import Predictions, Targets, Truth

SIMILARITY, RANK, NEAREST = range(3)
"""columns of the predictions: cosine similarity of the pair, rank of the second text, row of the nearest candidate"""
CELLS = 4_000_000
"""similarities in memory at a time"""
EQUAL = 1e-6
"""similarities that differ by less are tied: rounding depends on the place in a block"""

Rows = NDArray[np.int64]
OfAnchors = Callable[[Numbers, Rows, int], Numbers]
"""([m] ranks of correct candidates, [m] number of the anchor of each, anchors) -> [anchors] the metric"""


def rank_candidates(first: NDArray[np.float32], second: NDArray[np.float32], targets: Targets) -> Predictions:
    """[n, 3] similarity, rank and nearest candidate of each row, from vectors [n, width] of its two texts.

    The best candidate has rank 1. Tied candidates share their mean rank.
    """
    first, second = _unit(first), _unit(second)
    numbers, rows_of, own = np.unique(targets[:, 1], return_index=True, return_inverse=True)
    candidates = second[rows_of]
    place = np.minimum(np.searchsorted(numbers, targets[:, 0]), len(numbers) - 1)
    itself = np.where((numbers[place] == targets[:, 0]) & (place != own), place, -1)
    found = np.empty((len(first), 3))
    block = max(1, CELLS // len(candidates))
    for start in range(0, len(first), block):
        rows = np.arange(start, min(start + block, len(first)))
        cosines = first[rows] @ candidates.T
        at = np.arange(len(rows))
        hidden = itself[rows] >= 0
        cosines[at[hidden], itself[rows][hidden]] = -np.inf
        score = cosines[at, own[rows]]
        higher = (cosines > score[:, None] + EQUAL).sum(axis=1)
        near = (cosines >= score[:, None] - EQUAL).sum(axis=1) - higher
        found[rows, SIMILARITY] = score
        found[rows, RANK] = 1 + higher + (near - 1) / 2
        found[rows, NEAREST] = rows_of[cosines.argmax(axis=1)]
    return found


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: NDArray[np.float32] = vectors / np.maximum(norms, 1e-12)
    return unit


class Relevant:
    """The distinct correct candidates of every anchor."""

    def __init__(self, truth: Truth) -> None:
        targets = truth.targets[:, :2]
        _, self.rows = np.unique(targets, axis=0, return_index=True)
        """[m] a row of each distinct pair"""
        anchors, self.first_rows, self.anchor_of = np.unique(
            targets[self.rows, 0], return_index=True, return_inverse=True
        )
        self.first_rows = self.rows[self.first_rows]
        """[anchors] the row that stands for an anchor"""
        self.counts = np.bincount(self.anchor_of)
        """[anchors] number of correct candidates"""
        candidates = np.unique(targets[:, 1])
        pairs = set(map(tuple, targets[targets[:, 0] == targets[:, 1]].tolist()))
        own = np.isin(anchors, candidates) & np.array([(a, a) not in pairs for a in anchors.tolist()])
        self.candidates = len(candidates) - own.astype(np.int64)
        """[anchors] number of candidates"""


def of_anchors(metric: OfAnchors, expected: Callable[[Relevant], Numbers]) -> Form:
    """A mean over anchors. In a resample, the count of an anchor is that of one of its rows."""

    def columns(truth: Truth, predictions: Predictions) -> Numbers:
        found = Relevant(truth)
        values = np.zeros((len(truth), 2))
        ranks = predictions[found.rows, RANK]
        values[found.first_rows, 0] = metric(ranks, found.anchor_of, len(found.counts))
        values[found.first_rows, 1] = 1.0
        return values

    def finish(means: Numbers) -> Numbers:
        share = means[..., 1]
        ratio: Numbers = means[..., 0] / np.where(share > 0, share, np.nan)
        return ratio

    means = Means(columns, finish)
    return Form(
        compute=lambda truth, p: float(finish(columns(truth, p).mean(axis=0))),
        weighted=means.weighted,
        random=lambda truth: float(expected(Relevant(truth)).mean()),
        means=means,
    )


def recall_at(k: int) -> Form:
    """Share of an anchor's correct candidates with a rank of at most k."""

    def metric(ranks: Numbers, anchor_of: Rows, anchors: int) -> Numbers:
        hits = np.bincount(anchor_of, weights=ranks <= k, minlength=anchors)
        share: Numbers = hits / np.bincount(anchor_of, minlength=anchors)
        return share

    return of_anchors(metric, lambda found: np.minimum(1.0, k / found.candidates))


def mrr() -> Form:
    """Mean reciprocal rank of an anchor's best correct candidate."""

    def metric(ranks: Numbers, anchor_of: Rows, anchors: int) -> Numbers:
        best = np.full(anchors, np.inf)
        np.minimum.at(best, anchor_of, ranks)
        return 1 / best

    return of_anchors(metric, _random_reciprocal)


def _random_reciprocal(found: Relevant) -> Numbers:
    """Expected 1 / (rank of the first correct candidate) in random order: sum over k of P(rank = k) / k."""
    kinds, which = np.unique(np.stack([found.candidates, found.counts]), axis=1, return_inverse=True)
    values = []
    for candidates, correct in kinds.T.tolist():
        before = np.arange(candidates - correct + 1)  # candidates ranked before the first correct one
        later = np.concatenate([[1.0], np.cumprod((candidates - correct - before[:-1]) / (candidates - before[:-1]))])
        values.append(float((later * correct / (candidates - before) / (before + 1)).sum()))
    return np.array(values)[which.reshape(-1)]


def ndcg_at(k: int) -> Form:
    """Sum of `1 / log2(1 + rank)` over correct candidates up to rank k, divided by its largest possible value."""
    ideal = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, k + 2)))])

    def metric(ranks: Numbers, anchor_of: Rows, anchors: int) -> Numbers:
        gains = np.where(ranks <= k, 1 / np.log2(1 + ranks), 0.0)
        best = ideal[np.minimum(np.bincount(anchor_of, minlength=anchors), k)]
        share: Numbers = np.bincount(anchor_of, weights=gains, minlength=anchors) / best
        return share

    def expected(found: Relevant) -> Numbers:
        # each of the first k places holds a correct candidate with probability counts / candidates
        gains = ideal[np.minimum(k, found.candidates)] * found.counts / found.candidates
        share: Numbers = gains / ideal[np.minimum(found.counts, k)]
        return share

    return of_anchors(metric, expected)
