"""Remarks about the data of a task that affect its scores. They never stop a run."""

from collections.abc import Iterator

import numpy as np

from weft.data.columns import Column, header_is_data
from weft.data.dataset import Dataset
from weft.data.splits import pair_keys
from weft.data.tokens import TokenizedFile

WARNING = "warning: "
"""Prefix of important remarks."""
LOOKED_AT = 1000
"""Number of rows used to inspect the columns of a file."""


def remarks(train: Dataset, dev: Dataset) -> list[str]:
    """Return remarks about headers, file dialects, skipped rows, masked texts and rows in both train and dev."""
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
        if dataset.blank:
            rows = f"{dataset.blank:,} of {len(dataset.file):,} rows of {dataset.file.source}"
            found.append(f"{dataset.task}: {rows} have a blank label and are not asked")
        if dataset.file.masked:
            finds = ", ".join(f"{count:,} x {kind}" for kind, count in dataset.file.masked.items())
            found.append(f"{dataset.file.source}: masked {finds}")
    shared = overlap(train, dev)
    if shared:
        found.append(f"{train.task}: {shared:,} of {len(dev):,} dev rows also occur in train and inflate the score")
    return found


def header_warning(file: TokenizedFile) -> str | None:
    """Return a warning if the header of a csv or tsv file looks like a row, or None."""
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
    """Count the dev rows whose texts also occur in a train row, ignoring case and the order of a pair."""
    if not len(train):
        return 0
    known, asked = (pair_keys(row_texts(dataset)) for dataset in (train, dev))
    known.sort()
    nearest = known[np.minimum(np.searchsorted(known, asked), len(known) - 1)]
    return int((nearest == asked).sum())


def row_texts(dataset: Dataset) -> Iterator[tuple[str, ...]]:
    """Yield the texts of each row, chunk by chunk, so that a large file is never in memory as a whole."""
    wanted = np.zeros(len(dataset.file), dtype=bool)
    wanted[dataset.rows] = True
    columns = dataset.columns[: dataset.reader.texts]  # without hard negatives
    rows = zip(*(dataset.file.stream(name) for name in columns), strict=True)
    return (texts for texts, is_wanted in zip(rows, wanted, strict=True) if is_wanted)
