"""Sets part of a train file aside for measuring, without letting the same text stand on both sides."""

from collections.abc import Sequence

import numpy as np

from weft.randomness import generator
from weft.types import Rows


def split_rows(texts: Sequence[Sequence[str]], fraction: float, seed: int) -> tuple[Rows, Rows]:
    """Row numbers for training and for dev, in file order.

    `texts` has one list for each text column. Rows that share a text, in either column and in any case, are
    connected; connected rows are dealt out together, in an order drawn from the seed, until dev has its share. Tasks
    on the same texts get the same split, so that none trains on what another is measured on.
    """
    groups = _connected(texts)
    order = generator(seed, "dev split").permutation(len(groups))
    wanted = round(fraction * len(texts[0]))
    dev: list[int] = []
    for number in order:
        # A group that would overshoot is left to train, so that one text that fills the file cannot fill dev.
        if len(dev) + len(groups[number]) <= max(wanted, 1):
            dev += groups[number]
    held = np.zeros(len(texts[0]), dtype=bool)
    held[dev] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def _connected(texts: Sequence[Sequence[str]]) -> list[list[int]]:
    """Groups of rows that are linked by equal texts, by union-find."""
    parents = list(range(len(texts[0])))

    def root(row: int) -> int:
        while parents[row] != row:
            parents[row] = parents[parents[row]]
            row = parents[row]
        return row

    owner: dict[str, int] = {}
    for column in texts:
        for row, text in enumerate(column):
            first = owner.setdefault(fold(text), row)
            parents[root(row)] = root(first)
    groups: dict[int, list[int]] = {}
    for row in range(len(parents)):
        groups.setdefault(root(row), []).append(row)
    return list(groups.values())


def fold(text: str) -> str:
    """Texts that differ in case and blanks alone count as equal."""
    return " ".join(text.casefold().split())
