"""What a person should know of a task's data before trusting its scores. Nothing here stops a run."""

from collections.abc import Iterator

import numpy as np

from weft.data.dataset import Dataset
from weft.data.splits import fold


def remarks(train: Dataset, dev: Dataset) -> list[str]:
    """Sentences about rows left out, masked, cut or seen on both sides."""
    found = []
    files = {d.file.source: d for d in (train, dev)}.values()  # one file may be split into both
    for dataset in files:
        for what, count in dataset.file.skipped.items():
            found.append(f"{dataset.file.source}: {count:,} rows skipped ({what})")
        if dataset.unlabelled:
            found.append(f"{dataset.file.source}: {dataset.unlabelled:,} rows skipped (no usable label)")
        if dataset.file.masked:
            finds = ", ".join(f"{count:,} x {kind}" for kind, count in dataset.file.masked.items())
            found.append(f"{dataset.file.source}: masked {finds}")
    shared = overlap(train, dev)
    if shared:
        found.append(f"{train.task}: {shared:,} of {len(dev):,} dev rows also stand in train; they flatter the score")
    return found


def overlap(train: Dataset, dev: Dataset) -> int:
    """How many dev rows have the texts of a train row: in any case, the texts of a pair in either order."""
    waiting: dict[tuple[str, ...], int] = {}
    for texts in _folded(dev):
        waiting[texts] = waiting.get(texts, 0) + 1
    return sum(waiting.pop(texts, 0) for texts in _folded(train))


def _folded(dataset: Dataset) -> Iterator[tuple[str, ...]]:
    """The texts of each row, chunk by chunk: a large file is never in memory as a whole."""
    columns = [dataset.file.strings(name) for name in dataset.columns]
    wanted = np.zeros(len(dataset.file), dtype=bool)
    wanted[dataset.rows] = True
    row = 0
    for chunks in zip(*(column.chunks for column in columns), strict=True):
        for texts in zip(*(chunk.to_pylist() for chunk in chunks), strict=True):
            if wanted[row]:
                yield tuple(sorted(fold(text) for text in texts))
            row += 1
