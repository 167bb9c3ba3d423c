"""The rows of one task and one split, and batches of them."""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from weft.data.config import DataConfig
from weft.data.files import require_columns
from weft.data.labels import Labels, Targets, parse_labels
from weft.data.readings import Reader, TokenSequence, pack
from weft.data.tokenizer import Tokenizer
from weft.data.tokens import TokenizedFile, tokenize_file
from weft.errors import UserError
from weft.types import Batch, Rows


def locate(config: DataConfig, split: str, task: str, base: Path, data_dir: Path | None) -> Path:
    """A split's file: relative to `base` (the recipe's folder), or to --data-dir for a preset."""
    name: str | None = getattr(config, split)
    if name is None:
        raise UserError(f"tasks.{task}.data.{split}: is missing; name the file")
    if config.preset is None:
        return base / name
    if data_dir is not None:
        return data_dir / Path(name).name
    if Path(name).is_absolute():  # a recipe that was resolved before
        return Path(name)
    raise UserError(
        f"tasks.{task}.data: the preset {config.preset!r} names a layout, not a place; "
        f"say with --data-dir which folder holds {name}"
    )


def open_file(config: DataConfig, path: Path, tokenizer: Tokenizer, reader: Reader, task: str) -> TokenizedFile:
    """A task's file with the columns that its reading needs."""
    columns = [config.text]
    if reader.texts == 2:
        if config.text2 is None:
            raise UserError(f"tasks.{task}.data.text2: is missing; the reading {reader.reading!r} needs two texts")
        columns.append(config.text2)
    return tokenize_file(path, columns, tokenizer)


class Dataset:
    """Rows with their targets; batches are made on demand, so only labels live in memory."""

    def __init__(self, task: str, file: TokenizedFile, config: DataConfig, reader: Reader, labels: Labels) -> None:
        require_columns(file.source, file.columns, [config.label])
        self.task = task
        self.file = file
        self.reader = reader
        self.columns = [config.text] if reader.texts == 1 else [config.text, str(config.text2)]
        self.labels = labels
        self.targets: Targets = parse_labels(labels, file, config.label)

    def __len__(self) -> int:
        return len(self.file)

    def sequences(self, row: int) -> list[TokenSequence]:
        ids = [self.file.ids(column, row) for column in self.columns]
        return self.reader.sequences(ids[0], ids[1] if len(ids) > 1 else None)

    def batch(self, rows: Rows) -> Batch:
        """The rows in order of length: neighbours of equal length share one attention call."""
        items = [(self.sequences(int(row)), int(row)) for row in rows]
        items.sort(key=lambda item: [len(ids) for ids, _ in item[0]])
        sides = zip(*(sequences for sequences, _ in items), strict=True)
        order = np.array([row for _, row in items], dtype=np.int64)
        return Batch(
            task=self.task,
            rows=order,
            texts=tuple(pack(side) for side in sides),
            target=torch.from_numpy(self.targets[order]),
        )

    def token_counts(self) -> NDArray[np.int64]:
        """Tokens of each row as the body sees it, special tokens included."""
        lengths = [self.file.lengths(column) for column in self.columns]
        longest = self.reader.max_length
        total: NDArray[np.int64]
        if self.reader.reading == "cross":
            total = np.minimum(lengths[0] + lengths[1] + 3, longest)
            return total
        total = sum(
            (np.minimum(side + 2, longest) for side in lengths),
            np.zeros(len(self), dtype=np.int64),
        )
        return total

    def cut_rows(self) -> int:
        """How many rows lose tokens to `max_length`."""
        lengths = [self.file.lengths(column) for column in self.columns]
        second = lengths[1] if len(lengths) > 1 else np.zeros_like(lengths[0])
        return sum(self.reader.cut(int(a), int(b)) for a, b in zip(lengths[0], second, strict=True))

    def texts(self, row: int) -> list[str]:
        return [self.file.text(column, row) for column in self.columns]
