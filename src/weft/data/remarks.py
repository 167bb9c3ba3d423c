"""What a person should know of a task's data before trusting its scores. Nothing here stops a run."""

from collections.abc import Iterator

import numpy as np

from weft.data.columns import Column, header_is_data
from weft.data.dataset import Dataset
from weft.data.splits import pair_keys
from weft.data.tokens import TokenizedFile

WARNING = "warning: "
"""how a remark begins that a person must not miss"""
LOOKED_AT = 1000
"""rows of a file that show what its columns hold"""


def remarks(train: Dataset, dev: Dataset) -> list[str]:
    """Sentences about how files were read, and about rows left out, masked, cut or seen on both sides."""
    found = []
    files = {d.file.source: d for d in (train, dev)}.values()  # one file may be split into both
    for dataset in files:
        if warning := header_warning(dataset.file):
            found.append(WARNING + warning)
        if dataset.file.dialect is not None and not dataset.file.dialect.is_obvious:
            found.append(f"{dataset.file.source}: {dataset.file.dialect}")
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


def header_warning(file: TokenizedFile) -> str | None:
    """Says that the header of a csv or tsv file looks like a row."""
    if file.dialect is None or not file.dialect.header:
        return None
    columns = [Column(name) for name in file.dialect.names]
    for column in columns:
        for text in file.strings(column.name).slice(0, LOOKED_AT).to_pylist():
            column.add(text)
    if not header_is_data(file.dialect.names, columns):
        return None
    shown = ", ".join(repr(name) for name in file.dialect.names[:4])
    return (
        f"{file.source}:1: the header looks like a row ({shown}); if the file has no header, this row is lost: "
        "say `header = false` in the task's data table and name the columns with `columns`"
    )


def overlap(train: Dataset, dev: Dataset) -> int:
    """How many dev rows have the texts of a train row: in any case, the texts of a pair in either order."""
    known, asked = (pair_keys(_texts(dataset)) for dataset in (train, dev))
    known.sort()
    nearest = known[np.minimum(np.searchsorted(known, asked), len(known) - 1)]
    return int((nearest == asked).sum())


def _texts(dataset: Dataset) -> Iterator[tuple[str, ...]]:
    """The texts of each row, chunk by chunk: a large file is never in memory as a whole."""
    wanted = np.zeros(len(dataset.file), dtype=bool)
    wanted[dataset.rows] = True
    rows = zip(*(dataset.file.stream(name) for name in dataset.columns), strict=True)
    return (texts for texts, is_wanted in zip(rows, wanted, strict=True) if is_wanted)
