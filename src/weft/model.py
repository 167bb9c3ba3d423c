"""What a user loads: a trained body with its heads, ready to answer."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.data.dataset import Dataset
from weft.data.labels import Labels
from weft.data.masking import mask
from weft.data.readings import Reader, TokenSequence
from weft.data.tokenizer import Tokenizer
from weft.deliverable import read_model, read_settings
from weft.errors import UserError
from weft.evaluation.calibration import temper
from weft.evaluation.metrics import choose_metrics
from weft.experiment import build_network, build_reader, choose_device, task_files
from weft.recipe import Recipe
from weft.tasks.engine import Engine, TorchEngine
from weft.tasks.network import Network
from weft.tasks.onnx_engine import OnnxEngine, is_onnx_folder
from weft.tasks.store import load_heads
from weft.training.checkpoint import sha256
from weft.training.trainer import Evaluation, evaluate


@dataclass(frozen=True)
class Prediction:
    """The answer for one row."""

    task: str
    label: str | list[str] | None
    """the likeliest class; all labels that are more likely than not (multilabel); None for a regression"""
    score: float
    """the largest probability, or the predicted number in the label's own units"""
    probabilities: dict[str, float] | None

    def as_dict(self) -> dict[str, Any]:
        if self.label is None:
            return {"task": self.task, "score": self.score}
        return vars(self).copy()


class Model:
    """Load one with `weft.load(folder)`."""

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        recipe: Recipe,
        labels: dict[str, Labels],
        temperatures: Mapping[str, float] | None = None,
    ) -> None:
        """`temperatures` by task, for a model that was calibrated."""
        self.engine = engine
        self.tokenizer = tokenizer
        self.recipe = recipe
        self.labels = labels
        self.temperatures = dict(temperatures or {})

    @property
    def tasks(self) -> list[str]:
        return list(self.recipe.tasks)

    @property
    def network(self) -> Network:
        """The torch modules of a model folder."""
        if not isinstance(self.engine, TorchEngine):
            raise UserError("an ONNX folder has no torch network; use the run folder that it was exported from")
        return self.engine.network

    def columns(self, task: str) -> list[str]:
        """The text columns of a task's own files."""
        self._require(task)
        data = self.recipe.tasks[task].data
        return [data.text] if data.text2 is None else [data.text, data.text2]

    def predict(self, task: str, texts: Sequence[str], texts2: Sequence[str] | None = None) -> list[Prediction]:
        """Answers in the order of `texts`; a task on pairs needs `texts2` too."""
        rows = self.rows(task, texts, texts2)
        return self.read(task, self.engine.answers(task, rows)) if rows else []

    def rows(self, task: str, texts: Sequence[str], texts2: Sequence[str] | None = None) -> list[list[TokenSequence]]:
        """What a task's engine reads: the token sequences of every row."""
        reader = self.check_texts(task, texts, texts2)
        sides = [self._ids(side, task) for side in (texts, texts2) if side is not None]
        return [reader.sequences(row[0], row[1] if len(row) > 1 else None) for row in zip(*sides, strict=True)]

    def check_texts(self, task: str, texts: Sequence[str], texts2: Sequence[str] | None = None) -> Reader:
        """The reader of a task; raises if it does not read such texts."""
        self._require(task)
        reader = build_reader(self.recipe, task, self.tokenizer)
        if (reader.texts == 2) != (texts2 is not None):
            wanted = "two texts" if reader.texts == 2 else "one text"
            raise UserError(f"task {task!r} reads {wanted} for each row")
        if texts2 is not None and len(texts) != len(texts2):
            raise UserError(f"there are {len(texts)} first texts, but {len(texts2)} second ones")
        return reader

    def read(self, task: str, values: NDArray[np.float64]) -> list[Prediction]:
        """What an engine's answers say, by the task's labels and its temperature."""
        if task in self.temperatures:
            multilabel = self.labels[task].kind == "multilabel"
            values = temper(values, self.temperatures[task], multilabel=multilabel)
        return [self._prediction(task, value) for value in values]

    def embed(self, texts: Sequence[str], task: str | None = None) -> NDArray[np.float32]:
        """[n, width] vectors by the pooling of `task`, or of the first task that reads texts alone."""
        chosen = task or self.embedding_task()
        if not texts:
            self._require(chosen)
            return np.empty((0, self.engine.width(chosen)), dtype=np.float32)
        return self.engine.vectors(chosen, self.texts_alone(chosen, texts))

    def texts_alone(self, task: str, texts: Sequence[str]) -> list[TokenSequence]:
        """The token sequence of each text by itself, whatever the task's reading (embeddings)."""
        self._require(task)
        reader = build_reader(self.recipe, task, self.tokenizer).alone()
        return [reader.sequences(ids, None)[0] for ids in self._ids(texts, task)]

    def evaluate(
        self, split: str = "dev", *, data_dir: Path | None = None, files: dict[str, Path] | None = None
    ) -> Evaluation:
        """Scores on a split of the files it was trained with, or on `files` by task."""
        for name in files or {}:
            self._require(name)
        datasets: dict[str, Dataset] = {}
        metrics = {}
        for name in files or self.tasks:
            source = task_files(self.recipe, name, self.tokenizer, data_dir)
            labels = self.labels[name]
            datasets[name] = source.dataset_of(files[name], labels) if files else source.dataset(split, labels)
            metrics[name] = choose_metrics(labels, self.recipe.tasks[name].metrics, name)
        return evaluate(self.engine, datasets, metrics)

    def texts(self, task: str, split: str, data_dir: Path | None = None) -> list[tuple[str, ...]]:
        """The texts of each row of a split of the files it was trained with."""
        self._require(task)
        source = task_files(self.recipe, task, self.tokenizer, data_dir)
        dataset = source.dataset(split, self.labels[task])
        return [tuple(dataset.texts(row)) for row in range(len(dataset))]

    def _require(self, task: str) -> None:
        if task not in self.recipe.tasks:
            raise UserError(f"the model has no task {task!r}; it has {', '.join(self.tasks)}")

    def _ids(self, texts: Sequence[str], task: str) -> list[NDArray[np.int32]]:
        """Tokens of texts, masked as the task's training texts were."""
        kinds = self.recipe.tasks[task].data.mask
        masked = [mask(text, kinds, Counter()) for text in texts]
        return [np.array(ids, dtype=np.int32) for ids in self.tokenizer.encode(masked)]

    def embedding_task(self) -> str:
        """Whose pooling `embed` uses unless told: the first bi task's, else the first that reads one text."""
        by_reading = {task.reading: name for name, task in reversed(self.recipe.tasks.items())}
        return by_reading.get("bi") or by_reading.get("single") or self.tasks[0]

    def _prediction(self, task: str, value: Any) -> Prediction:
        labels = self.labels[task]
        if labels.is_numeric:
            return Prediction(task, None, float(labels.in_units(value)), None)
        best = int(value.argmax())
        probabilities = {name: float(p) for name, p in zip(labels.names, value, strict=True)}
        if labels.kind == "multilabel":
            chosen: str | list[str] = [name for name, p in probabilities.items() if p > 0.5]
        else:
            chosen = labels.names[best]
        return Prediction(task, chosen, float(value[best]), probabilities)


def model_folder(folder: Path) -> Path:
    """The `model` folder inside a run; any other folder is taken as it is."""
    inside = folder / "model"
    return inside if (inside / "weft.json").exists() else folder


def model_digest(folder: Path) -> str:
    """What tells models apart: weft.json holds the checksums of all its files."""
    settings = model_folder(folder) / "weft.json"
    if not settings.is_file():
        read_settings(model_folder(folder))  # which says what the folder lacks
    return sha256(settings)


def load(folder: str | Path, device: str = "auto") -> Model:
    """A trained model: a run folder, the `model` folder inside it, or what `weft export --to onnx` made of it."""
    path = model_folder(Path(folder))
    made = read_model(path)
    engine = _onnx_engine if is_onnx_folder(path) else _torch_engine
    ready = engine(path, made.recipe, made.labels, device)
    return Model(ready, Tokenizer.load(path), made.recipe, made.labels, made.temperatures)


def _torch_engine(folder: Path, recipe: Recipe, labels: dict[str, Labels], device: str) -> Engine:
    where = choose_device(device)
    network = build_network(recipe, labels, folder)
    load_heads(network, folder)
    return TorchEngine(network.to(where).eval(), where)


def _onnx_engine(folder: Path, recipe: Recipe, labels: dict[str, Labels], device: str) -> Engine:
    if device not in ("auto", "cpu"):
        raise UserError(f"--device {device}: an ONNX folder runs on the CPU; for a GPU use the run that it came from")
    return OnnxEngine(folder, {name: task.reading for name, task in recipe.tasks.items()}, labels)
