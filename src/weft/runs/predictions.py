"""The answers for the dev rows: predictions/TASK.parquet."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from weft.data.dataset import Dataset
from weft.data.labels import Labels, Targets
from weft.evaluation.plane import Plane
from weft.evaluation.scoring import Evaluation
from weft.evaluation.truth import Predictions, decide
from weft.foundation.config import file_name

ROWS_AT_ONCE = 8192
"""written as predictions, with their texts"""


def save_predictions(evaluation: Evaluation, datasets: dict[str, Dataset], folder: Path) -> None:
    """TASK.parquet for each task: texts, label, prediction and place of the embedding (`pca_*`) of every dev row."""
    for name, dataset in datasets.items():
        predictions, plane = evaluation.predictions[name], evaluation.planes[name]
        with pq.ParquetWriter(folder / f"{file_name(name)}.parquet", _schema(dataset, plane)) as writer:
            for start in range(0, len(dataset), ROWS_AT_ONCE):
                rows = range(len(dataset))[start : start + ROWS_AT_ONCE]
                writer.write_table(pa.table(_columns(dataset, rows, predictions, plane), schema=writer.schema))


def _schema(dataset: Dataset, plane: Plane) -> pa.Schema:
    labels = dataset.labels
    label = pa.float64() if labels.is_numeric else pa.string()
    if labels.kind == "multilabel":
        label = pa.list_(label)
    texts = dict.fromkeys(("text", "text2")[: len(dataset.columns)], pa.string())
    numbers = [*(f"p_{name}" for name in labels.names), "pca_1", "pca_2"]
    types = {"row": pa.int64(), **texts, "label": label, "prediction": label, **dict.fromkeys(numbers, pa.float64())}
    return pa.schema(types, {"pca_explained": json.dumps(plane.explained)})


def _columns(dataset: Dataset, rows: range, predictions: Predictions, plane: Plane) -> dict[str, Any]:
    """What predictions/TASK.parquet says of some rows."""
    part = slice(rows.start, rows.stop)
    targets, predictions = dataset.targets[part], predictions[part]
    sides = zip(*(dataset.texts(row) for row in rows), strict=True)
    columns: dict[str, Any] = {"row": list(rows), **dict(zip(("text", "text2"), sides, strict=False))}
    labels = dataset.labels
    if labels.is_numeric:
        columns["label"] = labels.in_units(np.asarray(targets, dtype=np.float64))
        columns["prediction"] = labels.in_units(predictions)
    else:
        columns["label"] = _named(labels, targets)
        columns["prediction"] = _named(labels, decide(predictions, targets))
        columns |= {f"p_{label}": predictions[:, i] for i, label in enumerate(labels.names)}
    return columns | {"pca_1": plane.points[part, 0], "pca_2": plane.points[part, 1]}


def _named(labels: Labels, classes: Targets) -> list[Any]:
    """Class numbers as names; for multilabel the list of all that apply."""
    if classes.ndim == 2:
        return [[name for name, on in zip(labels.names, row, strict=True) if on] for row in classes]
    return [labels.names[int(number)] for number in classes]
