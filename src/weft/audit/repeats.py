"""Rows of a task that repeat each other, within a split or across splits."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.audit.near import near_pairs
from weft.data.dataset import Dataset
from weft.data.remarks import row_texts
from weft.data.splits import Keys, fold, pair_keys


@dataclass(frozen=True)
class Repeat:
    """A row that repeats an earlier one. Rows are numbered over all splits, train first."""

    row: int
    earlier: int
    similarity: float
    """Jaccard similarity of character 5-grams; 1 for rows that differ in case, whitespace or order of texts only"""


@dataclass(frozen=True)
class Repeats:
    """All repeated rows of a task."""

    exact: list[Repeat]
    near: list[Repeat]
    keys: Keys
    """[n] key of each row; equal for exact repeats"""
    clusters: NDArray[np.int64]
    """[n] number of the cluster of rows that repeat each other, exactly or nearly"""


def find_repeats(splits: Iterable[Dataset], seed: int) -> Repeats:
    """Find the exact and near repeats in the rows of all splits together."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    texts = [tuple(sorted(map(fold, row))) for split in splits for row in row_texts(split)]
    keys = pair_keys(texts)
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    owner = first[place]  # the first row with the same texts
    exact = [Repeat(int(row), int(owner[row]), 1.0) for row in np.flatnonzero(owner != np.arange(len(owner)))]
    distinct = np.sort(first)
    pairs = near_pairs([" | ".join(texts[row]) for row in distinct], seed)
    near = [Repeat(int(distinct[p.second]), int(distinct[p.first]), p.similarity) for p in pairs]
    links = [(repeat.row, repeat.earlier) for repeat in [*exact, *near]]
    rows, others = np.array(links, dtype=np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(rows)), (rows, others)), shape=(len(keys), len(keys)))
    return Repeats(exact, near, keys, connected_components(graph, directed=False)[1].astype(np.int64))
