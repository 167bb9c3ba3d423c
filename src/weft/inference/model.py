"""What a user loads: a trained body with its heads, ready to answer."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from weft.bodies.weights import read_shape, saved_dtype
from weft.data.dataset import Dataset
from weft.data.empty import OnEmpty, answerable
from weft.data.frames import GivenFrames, Source, Table, frame_of
from weft.data.given import Given, is_table, sides_of, texts_of
from weft.data.layout import Layout
from weft.data.masking import mask
from weft.data.readings import TokenSequence
from weft.data.tokenizer import Tokenizer
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
    """Load one with `weft.load(folder)`."""

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        config: ModelConfig,
        labels: dict[str, Labels],
        temperatures: Mapping[str, float] | None = None,
        code: Mapping[str, SourceFile] | None = None,
    ) -> None:
        """`temperatures` by task, for a model that was calibrated; `code`: the files of parts named by `use`."""
        self.engine = engine
        self.tokenizer = tokenizer
        self.config = config
        self.labels = labels
        self.temperatures = dict(temperatures or {})
        self.frames: GivenFrames = {}
        """the splits that were given in Python, in the session that trained the model"""
        self.code = dict(code or {})

    @property
    def tasks(self) -> list[str]:
        return list(self.config.tasks)

    @property
    def network(self) -> Network:
        """The torch modules of a model folder."""
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
        """The text columns of a task's own files."""
        self._require(task)
        data = self.config.tasks[task].data
        return [data.text] if data.text2 is None else [data.text, data.text2]

    def layout(self, task: str) -> Layout:
        """How a task's own files are written."""
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
        """Answers in the order of `texts`, a list; one text gives one answer. A task on pairs needs `texts2` too.

        A table (a data frame) is read in its columns `text` and `text2`, or in those of the task's own files.
        `on_empty` says what becomes of empty texts: "error", "skip" (no answer: no label, a score that is NaN) or
        "keep" (answered as any other). Defaults to the task's own rule.
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
        """The answers of several tasks, all by default, from one pass: every different sequence is encoded once.

        Tasks on one text read `texts`, tasks on pairs read both.
        """
        chosen = self.choose(tasks)
        one = isinstance(texts, str)
        if not is_table(texts):  # a generator is used up by the first task that reads it
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
        """The same table with the answers of several tasks, all by default, from one pass.

        A data frame of pandas or polars and an Arrow table give one of the same library; other tables give a pandas
        data frame, or an Arrow table where pandas is not installed. Each task adds a column of its name: the label,
        the list of labels (multilabel) or the number (regression). Tasks with labels add `TASK_score`, the largest
        probability. A column of the input that has such a name becomes `input_NAME`. Missing texts are empty ones.
        """
        from weft.inference.tabular import predict_frame

        return predict_frame(self, frame, tasks, on_empty)

    def answer(
        self, asked: Mapping[str, Sequence[Sequence[str]]], on_empty: OnEmpty | None = None
    ) -> dict[str, list[Prediction]]:
        """For each task the answers for its rows; `asked` has a list of texts for each text column of the task."""
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
        """What becomes of an empty text unless somebody says otherwise: as in the task's training."""
        self._require(task)
        return self.config.tasks[task].data.empty_rule

    def choose(self, tasks: Sequence[str] | None) -> list[str]:
        """Tasks by name, each once; all of them for None."""
        if isinstance(tasks, str):
            tasks = [tasks]
        chosen = self.tasks if tasks is None else list(tasks)
        for task in chosen:
            self._require(task)
        if not chosen or len(set(chosen)) < len(chosen):
            raise UserError(f"tasks: found {', '.join(chosen) or 'none'}, expected at least one, each once")
        return chosen

    def rows(self, task: str, texts: Sequence[str], texts2: Sequence[str] | None = None) -> list[list[TokenSequence]]:
        """What a task's engine reads: the token sequences of every row."""
        self.check_texts(task, texts, texts2)
        reader = build_reader(self.config, task, self.tokenizer)
        sides = [self._ids(side, task) for side in (texts, texts2) if side is not None]
        return [reader.sequences(row[0], row[1] if len(row) > 1 else None) for row in zip(*sides, strict=True)]

    def check_texts(self, task: str, texts: Sequence[str], texts2: Sequence[str] | None = None) -> None:
        """Raise if a task does not read such texts."""
        self._require(task)
        self._require_sides(task, [texts] if texts2 is None else [texts, texts2])

    def _require_sides(self, task: str, sides: Sequence[Sequence[str]]) -> None:
        """There must be as many texts for each row as a task reads."""
        wanted = len(self.columns(task))
        if wanted != len(sides):
            raise UserError(f"task {task!r} reads {'two texts' if wanted == 2 else 'one text'} for each row")
        if len({len(side) for side in sides}) > 1:
            raise UserError(f"there are {len(sides[0])} first texts, but {len(sides[1])} second ones")

    def read(self, task: str, values: NDArray[np.float64]) -> list[Prediction]:
        """What an engine's answers say, by the task's labels and its temperature."""
        if task in self.temperatures:
            values = self.labels[task].kind.temper(values, self.temperatures[task])
        return [self._prediction(task, value) for value in values]

    def embed(self, texts: Given, task: str | None = None, *, on_empty: OnEmpty | None = None) -> NDArray[np.float32]:
        """[n, width] vectors by the pooling of `task`, or of the first task that reads texts alone.

        One text gives one vector [width]. Of a table the column `text` is read, or the first text column of the task's
        own files. An empty text is treated as in `predict`; skipped, its vector is NaN.
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
        """The token sequence of each text by itself, whatever the task's reading (embeddings)."""
        self._require(task)
        reader = build_reader(self.config, task, self.tokenizer).alone()
        return [reader.sequences(ids, None)[0] for ids in self._ids(texts, task)]

    def evaluate(
        self, split: str = "dev", *, data_dir: str | Path | None = None, files: Mapping[str, Given] | None = None
    ) -> Evaluation:
        """Scores on a split of the files it was trained with, or on `files`: a file or a table for each task named."""
        if split not in ("train", "dev", "test"):
            raise UserError(f"split {split!r}: expected train, dev or test")
        if files is not None and not isinstance(files, Mapping):
            task = self.tasks[0]
            raise UserError(f"files: expected one for each task, such as files={{{task!r}: ...}}; found {files!r:.80}")
        for name in files or {}:
            self._require(name)
        datasets: dict[str, Dataset] = {}
        metrics = {}
        for name in files or self.tasks:
            labels = self.labels[name]
            own = task_files(self.config, name, self.tokenizer, Path(data_dir) if data_dir else None, self.frames)
            if files:
                datasets[name] = own.dataset_of(_source(files[name], f"files[{name!r}]"), labels)
            else:
                datasets[name] = own.dataset(split, labels)
            metrics[name] = choose_metrics(labels, self.config.tasks[name].metrics, name)
        return evaluate(self.engine, datasets, metrics)

    def texts(self, task: str, split: str, data_dir: Path | None = None) -> list[tuple[str, ...]]:
        """The texts of each row of a split of the files it was trained with."""
        self._require(task)
        source = task_files(self.config, task, self.tokenizer, data_dir, self.frames)
        dataset = source.dataset(split, self.labels[task])
        return [tuple(dataset.texts(row)) for row in range(len(dataset))]

    def _require(self, task: str) -> None:
        if task not in self.config.tasks:
            raise UserError(f"the model has no task {task!r}; it has {', '.join(self.tasks)}")

    def _ids(self, texts: Sequence[str], task: str) -> list[NDArray[np.int32]]:
        """Tokens of texts, masked as the task's training texts were."""
        kinds = self.config.tasks[task].data.mask
        masked = [mask(text, kinds, Counter()) for text in texts]
        return [np.array(ids, dtype=np.int32) for ids in self.tokenizer.encode(masked)]

    def embedding_task(self) -> str:
        """Whose pooling `embed` uses unless told: the first bi task's, else the first that reads one text."""
        by_reading = {task.reading: name for name, task in reversed(self.config.tasks.items())}
        return by_reading.get("bi") or by_reading.get("single") or self.tasks[0]

    def _no_answer(self, task: str) -> Prediction:
        """Of a row that is skipped."""
        return Prediction(task, *self.labels[task].kind.no_answer())

    def _prediction(self, task: str, value: Any) -> Prediction:
        labels = self.labels[task]
        return Prediction(task, *labels.kind.answer(labels, value))


def _source(given: Given, name: str) -> Source:
    """A file, or a table that messages call `name`."""
    return Path(given) if isinstance(given, str | Path) else frame_of(given, name)


def load(folder: str | Path, device: str = "auto", *, trust_code: bool = False) -> Model:
    """A trained model: a run folder, the `model` folder inside it, or what `weft export --to onnx` made of it.

    A model whose pooling, head or loss is named by `use` needs that code to answer. It is imported only with
    `trust_code`; without it, such a model raises UserError. An ONNX folder needs no code.
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
        network = build_network(config, labels, folder, saved_dtype(folder))
    load_heads(network, folder)
    return TorchEngine(network.to(where).eval(), where)


def _onnx_engine(folder: Path, config: ModelConfig, labels: dict[str, Labels], device: str) -> Engine:
    if device not in ("auto", "cpu"):
        raise UserError(f"--device {device}: an ONNX folder runs on the CPU; for a GPU use the run that it came from")
    return OnnxEngine(folder, {name: task.reading for name, task in config.tasks.items()}, labels)
