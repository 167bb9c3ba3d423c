"""What is made of each row of a file: an answer, or a vector. Work is small: it travels to wherever it is done."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from weft.bulk.texts import Sides
from weft.data.layout import Layout
from weft.model import Model, Prediction


class Work(ABC):
    """One row of a table for each row of texts."""

    @abstractmethod
    def columns(self, model: Model) -> list[str]:
        """the text columns that it reads"""

    @abstractmethod
    def layout(self, model: Model) -> Layout:
        """how the files are written that those columns come from"""

    @abstractmethod
    def schema(self, model: Model) -> pa.Schema:
        """the table's columns; known before there is a row"""

    @abstractmethod
    def table(self, model: Model, texts: Sides) -> pa.Table:
        """In the order of the texts."""


@dataclass(frozen=True)
class Answers(Work):
    """task, label, score and the probability of each label, as columns."""

    task: str

    def columns(self, model: Model) -> list[str]:
        return model.columns(self.task)

    def layout(self, model: Model) -> Layout:
        return model.layout(self.task)

    def schema(self, model: Model) -> pa.Schema:
        labels = model.labels[self.task]
        label = pa.list_(pa.string()) if labels.kind == "multilabel" else pa.string()
        fields = [("task", pa.string()), ("label", label), ("score", pa.float64())]
        if labels.is_numeric:
            del fields[1]
        return pa.schema(fields + [(f"p_{name}", pa.float64()) for name in labels.names])

    def table(self, model: Model, texts: Sides) -> pa.Table:
        answers = model.predict(self.task, *texts)
        return pa.Table.from_pylist([_flat(answer) for answer in answers], self.schema(model))


def _flat(prediction: Prediction) -> dict[str, Any]:
    """A row of a table: probabilities in columns of their own."""
    answer = prediction.as_dict()
    probabilities = answer.pop("probabilities", {})
    return answer | {f"p_{label}": p for label, p in probabilities.items()}


@dataclass(frozen=True)
class Vectors(Work):
    """text and embedding, by the pooling of a task."""

    task: str | None
    """the one that `Model.embed` takes unless it is named"""

    def columns(self, model: Model) -> list[str]:
        return model.columns(self._task(model))[:1]

    def layout(self, model: Model) -> Layout:
        return model.layout(self._task(model))

    def schema(self, model: Model) -> pa.Schema:
        width = model.engine.width(self._task(model))
        return pa.schema([("text", pa.string()), ("embedding", pa.list_(pa.float32(), width))])

    def table(self, model: Model, texts: Sides) -> pa.Table:
        vectors = model.embed(texts[0], self.task)
        rows = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
        return pa.table([pa.array(texts[0], pa.string()), rows], schema=self.schema(model))

    def _task(self, model: Model) -> str:
        return self.task or model.embedding_task()
