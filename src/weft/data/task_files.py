"""Location and loading of the files or tables of one task, by split."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from weft.data.config import PRESETS, DataConfig
from weft.data.dataset import Dataset, text_columns
from weft.data.files import require_columns
from weft.data.frames import Frame, Source
from weft.data.hub import fetch_split
from weft.data.readings import Reader
from weft.data.splits import split_rows
from weft.data.tokenizer import Tokenizer
from weft.data.tokens import TokenizedFile, cache_folder, tokenize_file
from weft.foundation.errors import UserError
from weft.foundation.values import Rows
from weft.kinds.labels import Labels


def locate(config: DataConfig, split: str, task: str, base: Path, data_dir: Path | None) -> Path:
    """Return the file of a split: relative to `base` (the recipe's folder), in --data-dir (preset), or from the hub."""
    if split == "unlabelled" and split in (config.given or ()):
        raise UserError(
            f"tasks.{task}.data.unlabelled: these texts were made by `weft add` and are in no file; run it again, or "
            "name a file of texts in this key and remove `given`"
        )
    if split in (config.given or ()):
        raise UserError(
            f"tasks.{task}.data.{split}: these rows were given in Python and are in no file. Give them again, "
            f"weft.train(..., data={{{task!r}: {{{split!r}: ...}}}}) or model.evaluate(files={{{task!r}: ...}}), "
            f"or name a file with these columns: weft evaluate RUN --file {task}=FILE"
        )
    name: str | None = getattr(config, split)
    if name is None:
        more = f"give it beside {config.given[0]}, or set `dev_fraction`" if config.given else "name the file"
        raise UserError(f"tasks.{task}.data.{split}: is missing; {more}")
    if config.hub is not None:
        return fetch_split(config.hub, name, cache_folder(), task)
    if config.preset is None:
        return base / name
    if data_dir is not None:
        return data_dir / (getattr(PRESETS[config.preset], split) or Path(name).name)
    if Path(name).is_absolute():  # from a resolved recipe
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
        frames: Mapping[str, Frame] | None = None,
    ) -> None:
        """`frames` contains the splits given in Python."""
        if reader.texts == 2 and config.text2 is None:
            raise UserError(f"tasks.{task}.data.text2: is missing; the reading {reader.reading!r} needs two texts")
        self.task = task
        self.config = config
        self.reader = reader
        self.tokenizer = tokenizer
        self.seed = seed
        self.data_dir = data_dir
        self.frames = frames or {}
        self._open: dict[tuple[Source, bool], TokenizedFile] = {}
        self._halves: tuple[Rows, Rows] | None = None
        """Train and dev rows of their common file."""

    def skipping_bad_rows(self) -> "TaskFiles":
        """Return the same files, with unusable rows skipped."""
        config = self.config.model_copy(update={"on_bad_rows": "skip", "on_empty": None})
        return TaskFiles(self.task, config, self.reader, self.tokenizer, self.seed, self.data_dir, self.frames)

    def has(self, split: str) -> bool:
        """Return whether the task names a file of this split, or its rows were given in Python."""
        return getattr(self.config, split) is not None or split in (self.config.given or ())

    @property
    def has_train(self) -> bool:
        """Whether the task has a train file, or neither a train nor a dev file, which is an error about the former."""
        return self.has("train") or not self.has("dev")

    def open(self, split: str) -> TokenizedFile:
        if split == "dev" and self.config.dev_fraction is not None and not self.has("dev"):
            split = "train"
        training = split == "train"
        if split in self.frames:
            return self.open_source(self.frames[split], training=training, labelled=split != "unlabelled")
        return self.open_source(locate(self.config, split, self.task, Path(), self.data_dir), training=training)

    def open_source(self, source: Source, *, training: bool = False, labelled: bool = True) -> TokenizedFile:
        """Tokenize a file or table; the columns of hard negatives are read for training only."""
        if (source, training) not in self._open:
            texts = text_columns(self.config, self.reader, training=training)
            self._open[source, training] = tokenize_file(
                self._narrow(source, texts, labelled) if isinstance(source, Frame) else source,
                texts,
                self.tokenizer,
                masks=self.config.mask,
                skip_bad_rows=self.config.on_bad_rows == "skip",
                layout=self.config.layout,
                on_empty=self.config.empty_rule,
                words=self.reader.split,
            )
        return self._open[source, training]

    def _narrow(self, frame: Frame, texts: list[str], labelled: bool) -> Frame:
        """Keep only the columns that the task reads: other columns may change before a run is resumed."""
        wanted = [*texts, *(self.config.label_columns if labelled else ())]
        require_columns(frame, list(frame.keys), wanted)
        return frame.only(wanted)

    def dataset(self, split: str, labels: Labels, *, training: bool = False) -> Dataset:
        """Return the data set of a split; with its hard negatives for training."""
        file = self.open(split)
        part = self._part(file, split)
        return Dataset(self.task, file, self.config, self.reader, labels, part, training=training)

    def training(self, labels: Labels) -> Dataset:
        """Return the labelled rows to train on, with their hard negatives; no row if the task has no train file."""
        if self.has_train:
            return self.dataset("train", labels, training=True)
        return self.dataset("dev", labels).without_rows()

    def texts(self, split: str) -> Iterator[tuple[str, ...]]:
        """Yield the texts of each row of a split, with or without a label."""
        file = self.open(split)
        part = self._part(file, split)
        kept = None if part is None else set(part.tolist())
        rows = zip(*(file.stream(column) for column in text_columns(self.config, self.reader)), strict=True)
        return (texts for row, texts in enumerate(rows) if kept is None or row in kept)

    def dataset_of(self, source: Source, labels: Labels) -> Dataset:
        """Return a data set with all rows of another file or table with the same columns."""
        return Dataset(self.task, self.open_source(source), self.config, self.reader, labels)

    def _part(self, file: TokenizedFile, split: str) -> Rows | None:
        if self.config.dev_fraction is None or split not in ("train", "dev"):
            return None
        if self._halves is None:
            texts = [file.stream(column) for column in text_columns(self.config, self.reader)]
            self._halves = split_rows(texts, self.config.dev_fraction, self.config.split_seed(self.seed))
        return self._halves[0 if split == "train" else 1]
