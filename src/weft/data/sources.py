"""Sources: rows that several tasks ask about, so that each goes through the body once."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from weft.data.dataset import Dataset
from weft.data.readings import TokenSequence
from weft.foundation.randomness import generator
from weft.foundation.values import Rows

PART = 8192
"""Maximum number of rows in memory at a time in a pass over a whole source."""


class TextSource:
    """The rows of one or several data sets with the same texts, read in the same way. A row has one label per task."""

    def __init__(self, datasets: Sequence[Dataset]) -> None:
        self.datasets = {dataset.task: dataset for dataset in datasets}
        self.rows: Rows = np.unique(np.concatenate([dataset.rows for dataset in datasets]))
        """Index in the file of each row that any task asks about."""
        self.places: dict[str, Rows] = {task: self._places(dataset) for task, dataset in self.datasets.items()}
        """Task -> [n] number of each row in the task's data set, -1 where the task does not ask about it."""

    def __len__(self) -> int:
        return len(self.rows)

    def _places(self, dataset: Dataset) -> Rows:
        places = np.full(len(self.rows), -1)
        places[np.searchsorted(self.rows, dataset.rows)] = np.arange(len(dataset))
        return places

    def sequences(self, row: int) -> list[TokenSequence]:
        """Return the sequences of a row, which are the same for all tasks."""
        first = next(iter(self.datasets.values()))
        return first.sequences_at(int(self.rows[row]))

    def asked_rows(
        self, task: str, rows: Sequence[list[TokenSequence]], asked: Rows, places: Rows
    ) -> list[list[TokenSequence]]:
        """Return some rows of a part as a task reads them: with their words, if its labels are of words.

        `asked` are indices in the part, `places` the numbers of these rows in the task's data set.
        """
        dataset = self.datasets[task]
        if dataset.reader.split is None:
            return [rows[i] for i in asked]
        return [dataset.sequences(int(place)) for place in places]

    def sample(self, count: int) -> dict[str, Dataset]:
        """Return at most `count` rows of each data set, the same rows where several data sets have them.

        The sample depends on no seed, and a larger sample contains every smaller one.
        """
        order = generator(0, next(iter(self.datasets)), "sample of a source").permutation(len(self))
        found = {}
        for task, dataset in self.datasets.items():
            places = self.places[task][order]
            chosen = places[places >= 0][:count]
            found[task] = dataset if len(chosen) == len(dataset) else dataset.only(np.sort(chosen))
        return found

    def token_counts(self) -> NDArray[np.int64]:
        """Return the number of tokens per row that the body receives, including special tokens."""
        first = next(iter(self.datasets.values()))
        return first.reader.token_counts([first.file.lengths(column)[self.rows] for column in first.columns])

    def parts(self) -> Iterator[NDArray[np.int64]]:
        """Yield the row numbers of each part. Parts are small and strided over all rows."""
        count = -(-len(self) // PART)
        for first in range(count):
            yield np.arange(first, len(self), count)

    def part_sequences(self, where: NDArray[np.int64]) -> list[list[TokenSequence]]:
        """Return the sequences of each row of a part."""
        return [self.sequences(int(row)) for row in where]


def find_sources(datasets: Mapping[str, Dataset]) -> list[TextSource]:
    """Group data sets of one split into sources, in the order of their first tasks."""
    groups: dict[tuple[object, ...], list[Dataset]] = {}
    for dataset in datasets.values():
        groups.setdefault(dataset.texts_key, []).append(dataset)
    return [TextSource(group) for group in groups.values()]
