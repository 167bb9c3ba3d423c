"""Agreement between label columns of the same texts."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from weft.data.dataset import Dataset
from weft.data.splits import Keys

FEWEST = 20
"""fewer shared texts say nothing"""


@dataclass(frozen=True)
class Agreement:
    """How much the labels of two tasks on the same texts depend on each other."""

    tasks: tuple[str, str]
    texts: int
    """number of shared train texts"""
    association: float
    """Cramér's V with bias correction: 0 if independent, 1 if one label determines the other"""
    equal: float | None
    """fraction of equal labels, if both tasks have the same labels"""

    def __str__(self) -> str:
        same = "" if self.equal is None else f", {self.equal:.0%} of the labels are equal"
        return f"{' and '.join(self.tasks)}: Cramér's V {self.association:.2f} on {self.texts:,} shared texts{same}"


def agreements(train: Mapping[str, Dataset], keys: Mapping[str, Keys]) -> list[Agreement]:
    """Compare the labels of all pairs of tasks that share train texts; `keys` identify the texts of each row."""
    found = []
    for one, two in combinations(train, 2):
        _, first, second = np.intersect1d(keys[one], keys[two], return_indices=True)
        if len(first) >= FEWEST:
            found.append(_compare(train[one], train[two], first, second))
    return found


def _compare(one: Dataset, two: Dataset, first: NDArray[np.int64], second: NDArray[np.int64]) -> Agreement:
    labels, kind = one.labels, one.labels.kind
    mine, theirs = one.targets[first], two.targets[second]
    equal = 1 - float(kind.differ(labels, mine, theirs).mean()) if labels == two.labels else None
    groups = kind.groups(labels, mine), two.labels.kind.groups(two.labels, theirs)
    return Agreement((one.task, two.task), len(first), cramers_v(*groups), equal)


def cramers_v(one: NDArray[np.int64], two: NDArray[np.int64]) -> float:
    """Return Cramér's V of two groupings of n rows, with the bias correction of Bergsma (2013).

    `V = sqrt(p / min(r' - 1, c' - 1))` with `p = max(0, chi2 / n - (r - 1)(c - 1) / (n - 1))` and
    `r' = r - (r - 1)**2 / (n - 1)`, c' alike. NaN if a grouping has only one group.
    """
    rows, columns = (np.unique(grouping, return_inverse=True)[1] for grouping in (one, two))
    r, c, n = int(rows.max()) + 1, int(columns.max()) + 1, len(rows)
    if min(r, c) < 2 or n < 2:
        return float("nan")
    counts = np.zeros((r, c))
    np.add.at(counts, (rows, columns), 1)
    expected = counts.sum(1, keepdims=True) * counts.sum(0, keepdims=True) / n
    chi2 = float(((counts - expected) ** 2 / expected).sum())
    phi2 = max(0.0, chi2 / n - (r - 1) * (c - 1) / (n - 1))
    most = min(r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)) - 1
    return min(1.0, float(np.sqrt(phi2 / most))) if most > 0 else float("nan")
