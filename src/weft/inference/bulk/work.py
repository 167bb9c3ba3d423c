"""Work done for each row of a file: predictions or an embedding. Work objects are small, so they are cheap to send."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from weft.data.empty import OnEmpty
from weft.inference.bulk.kept import Keep, output_names
from weft.inference.bulk.texts import Block, Wish
from weft.inference.model import Model
from weft.inference.prediction import Prediction


class Work(ABC):
    """Base class of work. Computes one output row per input row."""

    keep: Keep
    """input columns that are copied to the output"""

    @abstractmethod
    def wishes(self, model: Model) -> dict[str, Wish]:
        """Return the input that each task reads from a row."""

    @abstractmethod
    def schema(self, model: Model, kept: pa.Schema) -> pa.Schema:
        """Return the output schema, including the `kept` input columns. It does not depend on the rows."""

    @abstractmethod
    def table(self, model: Model, block: Block) -> pa.Table:
        """Return the output table of a block, in the order of its rows."""


@dataclass(frozen=True)
class Answers(Work):
    """Predictions: the kept input columns, then label, score and the probability of each label.

    For one task, the column `task` contains its name. For several tasks, the name of each prediction column starts with
    the task's name and a dot.
    """

    tasks: tuple[str, ...] | None
    """None for all tasks of the model"""
    on_empty: OnEmpty | None = None
    """Defaults to the rule of each task."""
    keep: Keep = None

    def wishes(self, model: Model) -> dict[str, Wish]:
        return {
            task: replace(
                _wish(model, task, self.on_empty), joint=model.config.tasks[task].reading in ("cross", "concat")
            )
            for task in model.choose(self.tasks)
        }

    def schema(self, model: Model, kept: pa.Schema) -> pa.Schema:
        tasks = model.choose(self.tasks)
        answers = [field for task in tasks for field in _fields(model, task, "" if len(tasks) == 1 else f"{task}.")]
        names = output_names(kept.names, [field.name for field in answers])
        return pa.schema([*(field.with_name(names[field.name]) for field in kept), *answers])

    def table(self, model: Model, block: Block) -> pa.Table:
        kept = block.kept.schema if block.kept is not None else pa.schema([])
        schema = self.schema(model, kept)
        answers = model.answer(block.sides, self.on_empty)
        rows: list[dict[str, Any]] = [{} for _ in range(len(block))]
        for task, own in answers.items():
            for row, prediction in zip(rows, own, strict=True):
                row.update(_flat(prediction, "" if len(answers) == 1 else f"{task}."))
        own_schema = pa.schema(list(schema)[len(kept) :])
        columns = pa.Table.from_pylist(rows, own_schema).columns
        return pa.table([*(block.kept.columns if block.kept is not None else []), *columns], schema=schema)


def _wish(model: Model, task: str, on_empty: OnEmpty | None, texts: int = 2) -> Wish:
    """Return the input that a task reads: at most `texts` texts per row."""
    return Wish(model.columns(task)[:texts], on_empty or model.empty_rule(task), model.layout(task))


def _fields(model: Model, task: str, prefix: str) -> list[pa.Field]:
    """Return the columns of a task's predictions."""
    labels = model.labels[task]
    fields = [] if prefix else [("task", pa.string())]
    return [pa.field(f"{prefix}{name}", of) for name, of in [*fields, *labels.kind.answer_columns(labels)]]


def _flat(prediction: Prediction, prefix: str) -> dict[str, Any]:
    """Flatten a prediction to a table row with one column per probability."""
    answer = prediction.as_dict()
    probabilities = answer.pop("probabilities", {})
    return {f"{prefix}{key}": value for key, value in answer.items()} | {
        f"{prefix}p_{label}": p for label, p in probabilities.items()
    }


@dataclass(frozen=True)
class Vectors(Work):
    """Embeddings: the columns `text` and `embedding`, from the pooling of a task."""

    task: str | None
    """Defaults to the default task of `Model.embed`."""
    on_empty: OnEmpty | None = None
    """Defaults to the rule of the task."""
    keep: Keep = ()
    sides: int = 1
    """number of text columns that are read"""
    side: int = 0
    """the column that is embedded, of those"""

    def wishes(self, model: Model) -> dict[str, Wish]:
        task = self._task(model)
        return {task: _wish(model, task, self.on_empty, texts=self.sides)}

    def schema(self, model: Model, kept: pa.Schema) -> pa.Schema:  # noqa: ARG002
        width = model.engine.width(self._task(model))
        return pa.schema([("text", pa.string()), ("embedding", pa.list_(pa.float32(), width))])

    def table(self, model: Model, block: Block) -> pa.Table:
        task = self._task(model)
        texts: Sequence[str] = block.sides[task][self.side]
        vectors = model.embed(texts, task, on_empty=self.on_empty)
        rows = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
        return pa.table([pa.array(texts, pa.string()), rows], schema=self.schema(model, pa.schema([])))

    def _task(self, model: Model) -> str:
        return self.task or model.embedding_task()
