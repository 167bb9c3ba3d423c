"""What a user loads: a trained body with its heads, ready to answer."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from weft.data.masking import mask
from weft.data.tokenizer import Tokenizer
from weft.deliverable import read_model, read_temperatures
from weft.errors import UserError
from weft.evaluation.calibration import temper
from weft.experiment import build_network, build_reader, choose_device, task_files
from weft.recipe import Recipe
from weft.tasks.inference import answers, vectors
from weft.tasks.network import Network
from weft.tasks.store import load_heads
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
        network: Network,
        tokenizer: Tokenizer,
        recipe: Recipe,
        device: torch.device,
        temperatures: Mapping[str, float] | None = None,
    ) -> None:
        """`temperatures` by task, for a model that was calibrated."""
        self.network = network.to(device).eval()
        self.tokenizer = tokenizer
        self.recipe = recipe
        self.device = device
        self.temperatures = dict(temperatures or {})

    @property
    def tasks(self) -> list[str]:
        return list(self.recipe.tasks)

    def columns(self, task: str) -> list[str]:
        """The text columns of a task's own files."""
        self._require(task)
        data = self.recipe.tasks[task].data
        return [data.text] if data.text2 is None else [data.text, data.text2]

    def predict(self, task: str, texts: Sequence[str], texts2: Sequence[str] | None = None) -> list[Prediction]:
        """Answers in the order of `texts`; a task on pairs needs `texts2` too."""
        self._require(task)
        reader = build_reader(self.recipe, task, self.tokenizer)
        if (reader.texts == 2) != (texts2 is not None):
            wanted = "two texts" if reader.texts == 2 else "one text"
            raise UserError(f"task {task!r} reads {wanted} for each row")
        if texts2 is not None and len(texts) != len(texts2):
            raise UserError(f"there are {len(texts)} first texts, but {len(texts2)} second ones")
        if not texts:
            return []
        sides = [self._ids(side, task) for side in (texts, texts2) if side is not None]
        rows = [reader.sequences(row[0], row[1] if len(row) > 1 else None) for row in zip(*sides, strict=True)]
        values = answers(self.network, task, rows, self.device)
        if task in self.temperatures:
            multilabel = self.network.task(task).labels.kind == "multilabel"
            values = temper(values, self.temperatures[task], multilabel=multilabel)
        return [self._prediction(task, value) for value in values]

    def embed(self, texts: Sequence[str], task: str | None = None) -> NDArray[np.float32]:
        """[n, width] vectors by the pooling of `task`, or of the first task that reads texts alone."""
        chosen = task or self.embedding_task()
        self._require(chosen)
        if not texts:
            return np.empty((0, self.network.task(chosen).pooling.width), dtype=np.float32)
        reader = build_reader(self.recipe, chosen, self.tokenizer).alone()
        rows = [reader.sequences(ids, None)[0] for ids in self._ids(texts, chosen)]
        found = vectors(self.network, self.network.task(chosen), rows, self.device)
        return found.float().cpu().numpy()

    def evaluate(
        self, split: str = "dev", *, data_dir: Path | None = None, files: dict[str, Path] | None = None
    ) -> Evaluation:
        """Scores on a split of the files it was trained with, or on `files` by task."""
        for name in files or {}:
            self._require(name)
        datasets = {}
        for name in files or self.tasks:
            source = task_files(self.recipe, name, self.tokenizer, data_dir)
            labels = self.network.task(name).labels
            datasets[name] = source.dataset_of(files[name], labels) if files else source.dataset(split, labels)
        return evaluate(self.network, datasets, 0, self.device)

    def texts(self, task: str, split: str, data_dir: Path | None = None) -> list[tuple[str, ...]]:
        """The texts of each row of a split of the files it was trained with."""
        self._require(task)
        source = task_files(self.recipe, task, self.tokenizer, data_dir)
        dataset = source.dataset(split, self.network.task(task).labels)
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
        labels = self.network.task(task).labels
        if labels.is_numeric:
            return Prediction(task, None, float(labels.in_units(value)), None)
        best = int(value.argmax())
        probabilities = {name: float(p) for name, p in zip(labels.names, value, strict=True)}
        if labels.kind == "multilabel":
            chosen: str | list[str] = [name for name, p in probabilities.items() if p > 0.5]
        else:
            chosen = labels.names[best]
        return Prediction(task, chosen, float(value[best]), probabilities)


def load(folder: str | Path, device: str = "auto") -> Model:
    """A trained model: a run folder, or the `model` folder inside it."""
    path = Path(folder)
    if (path / "model" / "weft.json").exists():
        path = path / "model"
    recipe, labels = read_model(path)
    network = build_network(recipe, labels, path)
    load_heads(network, path)
    return Model(network, Tokenizer.load(path), recipe, choose_device(device), read_temperatures(path))
