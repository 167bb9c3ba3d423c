"""Data set of one task and one split, and its batches."""

from collections.abc import Callable
from copy import copy

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft.data.config import DataConfig
from weft.data.files import require_columns
from weft.data.joined import JoinedFile
from weft.data.labels import FlagColumns, LabelColumn, TextNumbers
from weft.data.readings import Reader, TokenSequence, pack
from weft.data.stored import StoredRows
from weft.data.tokens import TokenizedFile
from weft.data.word_labels import WordLabels
from weft.data.words import WordTable
from weft.foundation.errors import UserError
from weft.foundation.randomness import generator
from weft.foundation.values import Batch, Encoded, Rows, Words
from weft.kinds.labels import Labels
from weft.kinds.truth import Predictions, Targets


def text_columns(config: DataConfig, reader: Reader, *, training: bool = False) -> list[str]:
    """Return the names of the text columns that a reading uses; hard negatives are for training only."""
    columns = [config.text] if reader.texts == 1 else [config.text, str(config.text2)]
    return [*columns, *config.negative] if training else columns


def label_column(config: DataConfig, file: TokenizedFile) -> LabelColumn:
    if not config.label:
        return TextNumbers(file)
    require_columns(file.source, file.columns, list(config.label_columns))
    if isinstance(config.label, str) and file.has_words:
        return WordLabels(file, config.label, config.label_map, config.on_blank, config.text)
    if isinstance(config.label, str):
        return LabelColumn(file, config.label, config.label_map, config.on_blank)
    return FlagColumns(file, config.label, config.label_map, config.on_blank)


class Dataset:
    """Rows with their targets. Batches are built lazily: only row indices and targets are kept in memory."""

    def __init__(
        self,
        task: str,
        file: TokenizedFile,
        config: DataConfig,
        reader: Reader,
        labels: Labels,
        keep: Rows | None = None,
        *,
        training: bool = False,
    ) -> None:
        """`keep` contains the rows of the file that belong to this split. Defaults to all rows.

        `training` includes the columns of hard negatives.
        """
        self.task = task
        self.file = file
        self.reader = reader
        self.columns = text_columns(config, reader, training=training)
        self.labels = labels
        column = label_column(config, file)
        targets, rows, blank = column.targets(labels, skip_bad_rows=config.on_bad_rows == "skip")
        self.blank = blank
        """Number of rows of the file whose label is blank: the task does not ask about them."""
        self.unlabelled = len(file) - len(rows) - blank
        """Number of rows skipped because their label is unusable."""
        if keep is not None:
            kept = np.isin(rows, keep)
            targets, rows = targets[kept], rows[kept]
        self.rows: Rows = rows
        """Index in the file of each row of this data set."""
        self.targets: Targets = targets
        self.teacher: Callable[[Rows], Predictions] | None = None
        """Returns the teachers' predictions for rows of this data set, on the training scale."""
        self.labelled: NDArray[np.bool_] | None = None
        """Which rows have a label. None for all rows."""
        self.stored: StoredRows | None = None
        """What is stored of the body's outputs for these rows. None if the body reads their tokens."""
        if not len(rows):
            raise UserError(f"{file.source}: leaves no row for task {task!r}")

    def __len__(self) -> int:
        return len(self.rows)

    def sample(self, count: int, seed: int) -> "Dataset":
        """Return a random sample of `count` rows, deterministic for a seed, or all rows if there are no more."""
        if count >= len(self):
            return self
        return self.only(np.sort(generator(seed, self.task, "sample").choice(len(self), count, replace=False)))

    def only(self, chosen: Rows) -> "Dataset":
        """Return some rows of this data set, in the given order."""
        part = copy(self)
        part.rows, part.targets, part.teacher = self.rows[chosen], self.targets[chosen], None
        part.labelled = None if self.labelled is None else self.labelled[chosen]
        return part

    def without_rows(self) -> "Dataset":
        """Return a data set of the same labels without any row: that of a task without a train file."""
        none = copy(self)
        none.rows, none.targets, none.labelled = self.rows[:0], self.targets[:0], None
        return none

    def with_unlabelled(self, file: TokenizedFile) -> "Dataset":
        """Return these rows and all rows of a file without labels, whose targets are placeholders."""
        joined, count = copy(self), len(file)
        joined.file = JoinedFile(self.file, file, self.columns) if len(self) else file
        joined.rows = np.concatenate([self.rows, len(joined.file) - count + np.arange(count)])
        blank = np.array([self.labels.kind.blank(self.labels)] * count, dtype=self.targets.dtype)
        joined.targets = np.concatenate([self.targets, blank])
        joined.labelled = np.arange(len(joined.rows)) < len(self.rows)
        return joined

    def taught_by(self, teacher: Callable[[Rows], Predictions]) -> "Dataset":
        """Return the same rows with teachers' predictions, which every batch then carries beside its targets."""
        taught = copy(self)
        taught.teacher = teacher
        return taught

    @property
    def texts_key(self) -> tuple[object, ...]:
        """Equal for data sets whose files have the same texts, read in the same way. Words make no difference."""
        return self.file.texts_key(self.columns), tuple(self.columns), self.reader.without_words()

    def sequences(self, row: int) -> list[TokenSequence]:
        return self.sequences_at(int(self.rows[row]))

    def sequences_at(self, index: int) -> list[TokenSequence]:
        """Return the sequences of any row of the file."""
        ids = [self.file.ids(column, index) for column in self.columns]
        found = self.reader.sequences(ids[0], *ids[1:], words=self.file.words(self.columns[0], index))
        if self.stored is None or self.stored.depth is None:
            return found
        stored = zip(found, self.stored.states(index), strict=True)
        return [one._replace(states=states, depth=self.stored.depth) for one, states in stored]

    def _words(self, row: int) -> WordTable | None:
        return self.file.words(self.columns[0], int(self.rows[row]))

    def batch(self, rows: Rows) -> Batch:
        """Return a batch with rows sorted by length: token-level pooling groups adjacent rows of equal length."""
        if self.stored is not None and self.stored.depth is None:
            order = rows[self.stored.by_length(self.rows[rows])]
            return self._batch(order, (), self.vectors(order))
        items = [(self.sequences(int(row)), int(row)) for row in rows]
        items.sort(key=lambda item: [len(side.ids) for side in item[0]])
        sides = zip(*(sequences for sequences, _ in items), strict=True)
        return self._batch(np.array([row for _, row in items], dtype=np.int64), tuple(pack(side) for side in sides))

    def vectors(self, rows: Rows) -> tuple[Tensor, ...] | None:
        """Return the stored vectors of rows, one tensor [n, width] for each sequence of a row; None if there are none.

        A task that reads vectors reads nothing else of a row.
        """
        if self.stored is None or self.stored.depth is not None:
            return None
        return torch.from_numpy(self.stored.vectors(self.rows[rows])).unbind(1)

    def _batch(self, rows: Rows, texts: tuple[Encoded, ...], vectors: tuple[Tensor, ...] | None = None) -> Batch:
        words, target = self.targets_of(rows)
        return Batch(
            task=self.task,
            rows=rows,
            texts=texts,
            target=target,
            words=words,
            teacher=None if self.teacher is None else torch.from_numpy(self.teacher(rows)),
            labelled=None if self.labelled is None else torch.from_numpy(self.labelled[rows]),
            vectors=vectors,
        )

    def targets_of(self, rows: Rows) -> tuple[Words | None, Tensor]:
        """Return the targets of rows: one per row, or one per trained token of their words, with these."""
        if self.reader.split is None:
            return None, torch.from_numpy(self.targets[rows])
        tokens = [self.reader.trained_tokens(table) for row in rows if (table := self._words(int(row))) is not None]
        counts = torch.tensor([len(positions) for positions, _ in tokens])
        positions = torch.from_numpy(np.concatenate([positions for positions, _ in tokens]).astype(np.int64))
        numbers = np.concatenate([self.targets[row][own] for row, (_, own) in zip(rows, tokens, strict=True)])
        owners = torch.repeat_interleave(torch.arange(len(rows)), counts)
        return Words(owners, positions, len(rows)), torch.from_numpy(numbers)

    def units(self, rows: Rows) -> int:
        """Return the number of units of rows, which a loss is averaged over: rows, or trained tokens of their words."""
        if self.reader.split is None:
            return len(rows)
        tables = (self._words(int(row)) for row in rows)
        return sum(len(self.reader.trained_tokens(table)[0]) for table in tables if table is not None)

    def text_lengths(self) -> list[NDArray[np.int64]]:
        """Return the number of tokens of each text before truncation, one array per column."""
        return [self.file.lengths(column)[self.rows] for column in self.columns]

    def token_counts(self) -> NDArray[np.int64]:
        """Return the number of tokens per row that the body receives, including special tokens."""
        return self.reader.token_counts(self.text_lengths())

    def sequence_tokens(self, indices: Rows) -> NDArray[np.int64]:
        """Return [sequences, n] numbers of tokens of each sequence of rows of the file."""
        return self.reader.sequence_tokens([self.file.lengths(column)[indices] for column in self.columns])

    def cut_rows(self) -> int:
        """Return the number of rows that lose tokens because of `max_length`."""
        return int(self.reader.is_cut(self.text_lengths()).sum())

    def unseen_words(self) -> int:
        """Return the number of words without a token or cut off by `max_length`; they are predicted as outside."""
        if self.reader.split is None:
            return 0
        places = (self.sequences(row)[0].words for row in range(len(self)))
        return sum(int((words[:, 2] < 0).sum()) for words in places if words is not None)

    def texts(self, row: int) -> list[str]:
        return [self.file.text(column, int(self.rows[row])) for column in self.columns]
