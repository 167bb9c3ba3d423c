"""Finds and opens the files of one task, split by split."""

from pathlib import Path

from weft.data.config import DataConfig
from weft.data.dataset import Dataset, text_columns
from weft.data.hub import fetch_split
from weft.data.readings import Reader
from weft.data.splits import split_rows
from weft.data.tokenizer import Tokenizer
from weft.data.tokens import TokenizedFile, cache_folder, tokenize_file
from weft.foundation.errors import UserError
from weft.foundation.values import Rows
from weft.kinds.labels import Labels


def locate(config: DataConfig, split: str, task: str, base: Path, data_dir: Path | None) -> Path:
    """A split's file: relative to `base` (the recipe's folder), in --data-dir for a preset, or from the hub."""
    name: str | None = getattr(config, split)
    if name is None:
        raise UserError(f"tasks.{task}.data.{split}: is missing; name the file")
    if config.hub is not None:
        return fetch_split(config.hub, name, cache_folder(), task)
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


class TaskFiles:
    """The splits of one task. With `dev_fraction`, train and dev are two parts of one file."""

    def __init__(
        self,
        task: str,
        config: DataConfig,
        reader: Reader,
        tokenizer: Tokenizer,
        seed: int,
        data_dir: Path | None = None,
    ) -> None:
        if reader.texts == 2 and config.text2 is None:
            raise UserError(f"tasks.{task}.data.text2: is missing; the reading {reader.reading!r} needs two texts")
        self.task = task
        self.config = config
        self.reader = reader
        self.tokenizer = tokenizer
        self.seed = seed
        self.data_dir = data_dir
        self._open: dict[Path, TokenizedFile] = {}
        self._halves: tuple[Rows, Rows] | None = None
        """the rows of train and dev in the file that they share"""

    def skipping_bad_rows(self) -> "TaskFiles":
        """The same files, read without the rows that cannot be used."""
        config = self.config.model_copy(update={"on_bad_rows": "skip", "on_empty": None})
        return TaskFiles(self.task, config, self.reader, self.tokenizer, self.seed, self.data_dir)

    def open(self, split: str) -> TokenizedFile:
        shared = split == "dev" and self.config.dev_fraction is not None
        return self.open_path(locate(self.config, "train" if shared else split, self.task, Path(), self.data_dir))

    def open_path(self, path: Path) -> TokenizedFile:
        if path not in self._open:
            self._open[path] = tokenize_file(
                path,
                text_columns(self.config, self.reader),
                self.tokenizer,
                masks=self.config.mask,
                skip_bad_rows=self.config.on_bad_rows == "skip",
                layout=self.config.layout,
                on_empty=self.config.empty_rule,
            )
        return self._open[path]

    def dataset(self, split: str, labels: Labels) -> Dataset:
        file = self.open(split)
        return Dataset(self.task, file, self.config, self.reader, labels, self._part(file, split))

    def dataset_of(self, path: Path, labels: Labels) -> Dataset:
        """All rows of another file with the same columns."""
        return Dataset(self.task, self.open_path(path), self.config, self.reader, labels)

    def _part(self, file: TokenizedFile, split: str) -> Rows | None:
        if self.config.dev_fraction is None or split == "test":
            return None
        if self._halves is None:
            texts = [file.stream(column) for column in text_columns(self.config, self.reader)]
            self._halves = split_rows(texts, self.config.dev_fraction, self.seed)
        return self._halves[0 if split == "train" else 1]
