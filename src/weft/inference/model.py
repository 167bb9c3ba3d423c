"""Trained model for inference: a body with its task heads."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from weft.bodies.weights import read_shape, saved_dtype
from weft.data.dataset import Dataset
from weft.data.empty import OnEmpty, answerable
from weft.data.frames import GivenFrames, Table
from weft.data.given import Given, is_table, sides_of, source_of, texts_of
from weft.data.layout import Layout
from weft.data.masking import mask
from weft.data.readings import TokenSequence
from weft.data.tokenizer import Tokenizer
from weft.data.word_tokens import word_rows
from weft.data.words import plain_text
from weft.evaluation.scoring import Evaluation
from weft.foundation.devices import choose_device
from weft.foundation.errors import UserError
from weft.foundation.notebook import html_table
from weft.foundation.own_code import SourceFile
from weft.foundation.start import NoRandomStart
from weft.inference.engine import Engine, TorchEngine
from weft.inference.evaluate import evaluate
from weft.inference.joint import Ask
from weft.inference.onnx_engine import OnnxEngine, is_onnx_folder
from weft.inference.prediction import Prediction
from weft.kinds.labels import Labels
from weft.kinds.metrics import choose_metrics
from weft.runs.model_folder import model_folder, read_model
from weft.tasks.building import build_network, build_reader, planned_network, task_files
from weft.tasks.config import ModelConfig
from weft.tasks.network import Network
from weft.tasks.store import load_heads, require_planned_heads


class Model:
    """Trained model for prediction, embedding and evaluation. Load one with `weft.load(folder)`."""

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        config: ModelConfig,
        labels: dict[str, Labels],
        temperatures: Mapping[str, float] | None = None,
        code: Mapping[str, SourceFile] | None = None,
    ) -> None:
        """`temperatures`: by task, for a calibrated model. `code`: source files of the components named by `use`."""
        self.engine = engine
        self.tokenizer = tokenizer
        self.config = config
        self.labels = labels
        self.temperatures = dict(temperatures or {})
        self.frames: GivenFrames = {}
        """splits passed as Python objects in the session that trained the model"""
        self.code = dict(code or {})

    @property
    def tasks(self) -> list[str]:
        return list(self.config.tasks)

    @property
    def network(self) -> Network:
        """The PyTorch network. Not available for an ONNX folder."""
        if not isinstance(self.engine, TorchEngine):
            raise UserError("an ONNX folder has no torch network; use the run folder that it was exported from")
        return self.engine.network

    def __repr__(self) -> str:
        return f"Model({self.config.name}: {', '.join(self.tasks)})"

    def _repr_html_(self) -> str:
        own = self.labels
        rows = [[name, t.kind, t.reading, own[name].kind.expected(own[name])] for name, t in self.config.tasks.items()]
        return html_table(f"Model {self.config.name}", ["task", "kind", "reading", "label"], rows)

    def columns(self, task: str) -> list[str]:
        """Return the names of the text columns in the task's data files."""
        self._require(task)
        data = self.config.tasks[task].data
        return [data.text] if data.text2 is None else [data.text, data.text2]

    def layout(self, task: str) -> Layout:
        """Return the layout of the task's data files."""
        self._require(task)
        return self.config.tasks[task].data.layout

    @overload
    def predict(
        self, task: str, texts: str, texts2: str | None = None, *, on_empty: OnEmpty | None = None
    ) -> Prediction: ...
    @overload
    def predict(
        self, task: str, texts: Given, texts2: Given | None = None, *, on_empty: OnEmpty | None = None
    ) -> list[Prediction]: ...
    def predict(
        self, task: str, texts: Given, texts2: Given | None = None, *, on_empty: OnEmpty | None = None
    ) -> Prediction | list[Prediction]:
        """Return a list of predictions in the order of `texts`, or one prediction for a single text.

        A task on text pairs also needs `texts2`. Of a table (a data frame), the columns `text` and `text2` are read,
        or the columns named as in the task's data files. `on_empty` sets how empty texts are handled: "error", "skip"
        (no prediction: no label, score NaN) or "keep" (predicted like any other text). Defaults to the task's rule.
        """
        answers = self.answer({task: sides_of(texts, texts2, self.columns(task))}, on_empty)[task]
        return answers[0] if isinstance(texts, str) else answers

    @overload
    def predict_all(
        self,
        texts: str,
        texts2: str | None = None,
        *,
        tasks: Sequence[str] | None = None,
        on_empty: OnEmpty | None = None,
    ) -> dict[str, Prediction]: ...
    @overload
    def predict_all(
        self,
        texts: Given,
        texts2: Given | None = None,
        *,
        tasks: Sequence[str] | None = None,
        on_empty: OnEmpty | None = None,
    ) -> dict[str, list[Prediction]]: ...
    def predict_all(
        self,
        texts: Given,
        texts2: Given | None = None,
        *,
        tasks: Sequence[str] | None = None,
        on_empty: OnEmpty | None = None,
    ) -> dict[str, Prediction] | dict[str, list[Prediction]]:
        """Return the predictions of several tasks from one pass. Each distinct sequence is encoded once.

        `tasks` defaults to all tasks. Tasks on single texts read `texts`; tasks on text pairs read `texts` and
        `texts2`.
        """
        chosen = self.choose(tasks)
        one = isinstance(texts, str)
        if not is_table(texts):  # a generator would be exhausted by the first task
            texts, texts2 = texts_of(texts, "texts"), None if texts2 is None else texts_of(texts2, "texts2")
        paired = [task for task in chosen if len(self.columns(task)) == 2]
        if texts2 is not None and not paired:
            raise UserError(f"texts2: none of the tasks {', '.join(chosen)} reads two texts")
        asked = {task: sides_of(texts, texts2 if task in paired else None, self.columns(task)) for task in chosen}
        answers = self.answer(asked, on_empty)
        return {task: own[0] for task, own in answers.items()} if one else answers

    def predict_frame(
        self, frame: Table, tasks: str | Sequence[str] | None = None, *, on_empty: OnEmpty | None = None
    ) -> Any:
        """Return the table with the predictions of several tasks added, from one pass. `tasks` defaults to all tasks.

        For a pandas or polars data frame or an Arrow table, the result is from the same library. Otherwise it is a
        pandas data frame, or an Arrow table if pandas is not installed. Each task adds a column with its name: the
        label, the list of labels (multilabel) or the number (regression). Tasks with labels also add `TASK_score`, the
        largest probability. An input column with such a name is renamed to `input_NAME`. Missing texts count as empty.
        """
        from weft.inference.tabular import predict_frame

        return predict_frame(self, frame, tasks, on_empty)

    def answer(
        self, asked: Mapping[str, Sequence[Sequence[str]]], on_empty: OnEmpty | None = None
    ) -> dict[str, list[Prediction]]:
        """Return the predictions by task. `asked` maps each task to one list of texts per text column."""
        kept: dict[str, list[int]] = {}
        for task, sides in asked.items():
            self._require_sides(task, sides)
            kept[task] = answerable(sides, on_empty or self.empty_rule(task))
        asks = [
            Ask(task, self.rows(task, *([side[row] for row in kept[task]] for side in sides)))
            for task, sides in asked.items()
            if kept[task]
        ]
        values = self.engine.together(asks) if asks else []
        answered = {ask.task: self.read(ask.task, np.asarray(v)) for ask, v in zip(asks, values, strict=True)}
        found = {}
        for task, sides in asked.items():
            found[task] = [self._no_answer(task)] * len(sides[0])
            for row, prediction in zip(kept[task], answered.get(task, []), strict=True):
                found[task][row] = prediction
        return found

    def empty_rule(self, task: str) -> OnEmpty:
        """Return the default handling of empty texts: the rule used in the task's training."""
        self._require(task)
        return self.config.tasks[task].data.empty_rule

    def choose(self, tasks: Sequence[str] | None) -> list[str]:
        """Return the given task names after checking them, or all tasks for None. Each task may occur only once."""
        if isinstance(tasks, str):
            tasks = [tasks]
        chosen = self.tasks if tasks is None else list(tasks)
        for task in chosen:
            self._require(task)
        if not chosen or len(set(chosen)) < len(chosen):
            raise UserError(f"tasks: found {', '.join(chosen) or 'none'}, expected at least one, each once")
        return chosen

    def rows(self, task: str, texts: Sequence[str], texts2: Sequence[str] | None = None) -> list[list[TokenSequence]]:
        """Return the token sequences of every row, the input of the engine."""
        self.check_texts(task, texts, texts2)
        reader = build_reader(self.config, task, self.tokenizer)
        if reader.split is not None:
            return word_rows(texts, self.tokenizer, reader)
        sides = [self._ids(side, task) for side in (texts, texts2) if side is not None]
        return [reader.sequences(row[0], row[1] if len(row) > 1 else None) for row in zip(*sides, strict=True)]

    def check_texts(self, task: str, texts: Sequence[str], texts2: Sequence[str] | None = None) -> None:
        """Raise UserError if the number of texts per row does not fit the task."""
        self._require(task)
        self._require_sides(task, [texts] if texts2 is None else [texts, texts2])

    def _require_sides(self, task: str, sides: Sequence[Sequence[str]]) -> None:
        """Raise UserError unless each row has the number of texts that the task reads."""
        wanted = len(self.columns(task))
        if wanted != len(sides):
            raise UserError(f"task {task!r} reads {'two texts' if wanted == 2 else 'one text'} for each row")
        if len({len(side) for side in sides}) > 1:
            raise UserError(f"there are {len(sides[0])} first texts, but {len(sides[1])} second ones")

    def read(self, task: str, values: NDArray[np.float64]) -> list[Prediction]:
        """Convert the engine's outputs to predictions, using the task's labels and temperature."""
        labels = self.labels[task]
        if task in self.temperatures:
            values = labels.kind.temper(values, self.temperatures[task])
            labels = labels.tempered(self.temperatures[task])
        return [Prediction(task, *labels.kind.answer(labels, value)) for value in values]

    def embed(self, texts: Given, task: str | None = None, *, on_empty: OnEmpty | None = None) -> NDArray[np.float32]:
        """Return embeddings [n, width] from the pooling of `task`. One text gives one vector [width].

        `task` defaults to the first task with a bi reading, else the first with a single reading, else the first task.
        Of a table, the column `text` is read, or the first text column of the task's data files. Empty texts are
        handled as in `predict`; the vector of a skipped text is NaN.
        """
        chosen = task or self.embedding_task()
        side = sides_of(texts, None, self.columns(chosen)[:1])[0]
        kept = answerable([side], on_empty or self.empty_rule(chosen))
        found = np.full((len(side), self.engine.width(chosen)), np.nan, dtype=np.float32)
        if kept:
            found[kept] = self.engine.vectors(chosen, self.texts_alone(chosen, [side[row] for row in kept]))
        vectors: NDArray[np.float32] = found[0] if isinstance(texts, str) else found
        return vectors

    def texts_alone(self, task: str, texts: Sequence[str]) -> list[TokenSequence]:
        """Return the token sequence of each single text, independent of the task's reading. Used for embeddings."""
        self._require(task)
        reader = build_reader(self.config, task, self.tokenizer).alone()
        return [reader.sequences(ids, None)[0] for ids in self._ids(texts, task)]

    def evaluate(
        self, split: str = "dev", *, data_dir: str | Path | None = None, files: Mapping[str, Given] | None = None
    ) -> Evaluation:
        """Evaluate on a split of the data it was trained with, or on `files`: one file or table per task."""
        if split not in ("train", "dev", "test"):
            raise UserError(f"split {split!r}: expected train, dev or test")
        if files is not None and not isinstance(files, Mapping):
            task = self.tasks[0]
            raise UserError(f"files: expected one for each task, such as files={{{task!r}: ...}}; found {files!r:.80}")
        for name in files or {}:
            self._require(name)
        datasets = self.datasets(files or self.tasks, split, Path(data_dir) if data_dir else None)
        metrics = {name: choose_metrics(self.labels[name], self.config.tasks[name].metrics, name) for name in datasets}
        return evaluate(self.engine, datasets, metrics, self.config.auxiliary)

    def datasets(
        self, tasks: Sequence[str] | Mapping[str, Given], split: str, data_dir: Path | None = None
    ) -> dict[str, Dataset]:
        """Return the labelled rows of these tasks: a split of the training data, or a file or table for each task."""
        found = {}
        for name in tasks:
            own = task_files(self.config, name, self.tokenizer, data_dir, self.frames)
            if isinstance(tasks, Mapping):
                found[name] = own.dataset_of(source_of(tasks[name], f"files[{name!r}]"), self.labels[name])
            else:
                found[name] = own.dataset(split, self.labels[name])
        return found

    def texts(self, task: str, split: str, data_dir: Path | None = None) -> list[tuple[str, ...]]:
        """Return the texts of each row of a split of the data it was trained with."""
        self._require(task)
        dataset = self.datasets([task], split, data_dir)[task]
        return [tuple(dataset.texts(row)) for row in range(len(dataset))]

    def _require(self, task: str) -> None:
        if task not in self.config.tasks:
            raise UserError(f"the model has no task {task!r}; it has {', '.join(self.tasks)}")

    def _ids(self, texts: Sequence[str], task: str) -> list[NDArray[np.int32]]:
        """Tokenize texts after masking them like the task's training texts."""
        kinds = self.config.tasks[task].data.mask
        masked = [mask(plain_text(text), kinds, Counter()) for text in texts]
        return [np.array(ids, dtype=np.int32) for ids in self.tokenizer.encode(masked)]

    def embedding_task(self) -> str:
        """Return the task whose pooling `embed` uses by default: first bi task, else first single, else first task."""
        tasks = {
            name: task for name, task in self.config.tasks.items() if self.labels[name].kind.word_split(None) is None
        }
        by_reading = {task.reading: name for name, task in reversed(tasks.items())}
        return by_reading.get("bi") or by_reading.get("single") or next(iter(tasks), self.tasks[0])

    def _no_answer(self, task: str) -> Prediction:
        """Return the empty prediction of a skipped row."""
        return Prediction(task, *self.labels[task].kind.no_answer())


def load(folder: str | Path, device: str = "auto", *, trust_code: bool = False) -> Model:
    """Load a trained model from a run folder, its `model` subfolder, or a folder written by `weft export --to onnx`.

    A model whose pooling, head or loss is named by `use` needs that code for inference. The code is imported only if
    `trust_code` is True; otherwise loading such a model raises UserError. An ONNX folder needs no code.
    """
    path = model_folder(Path(folder))
    made = read_model(path)
    engine, config = _onnx_engine, made.config
    code: dict[str, SourceFile] = {}
    if not is_onnx_folder(path):
        engine = _torch_engine
        config, code = config.answering().with_code(trust_code, str(path / "weft.json"))
    tokenizer = Tokenizer.load(path)
    if (path / "config.json").is_file():  # an ONNX folder has none
        tokenizer.require_fits(read_shape(path).vocabulary)
    ready = engine(path, config, made.labels, device)
    return Model(ready, tokenizer, config, made.labels, made.temperatures, code)


def _torch_engine(folder: Path, config: ModelConfig, labels: dict[str, Labels], device: str) -> Engine:
    where = choose_device(device)
    require_planned_heads(planned_network(config, labels, folder), folder)
    with NoRandomStart():
        network = build_network(config, labels, folder, saved_dtype(folder), mapped=True)
    load_heads(network, folder)
    return TorchEngine(network.to(where).eval(), where)


def _onnx_engine(folder: Path, config: ModelConfig, labels: dict[str, Labels], device: str) -> Engine:
    if device not in ("auto", "cpu"):
        raise UserError(f"--device {device}: an ONNX folder runs on the CPU; for a GPU use the run that it came from")
    return OnnxEngine(folder, {name: task.reading for name, task in config.tasks.items()}, labels)
