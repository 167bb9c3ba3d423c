"""Predictions for the dev rows: predictions/TASK.parquet."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from weft.data.dataset import Dataset
from weft.evaluation.plane import Plane
from weft.evaluation.scoring import Evaluation
from weft.kinds.truth import Predictions, Truth
from weft.runs.folder import answers_in

ROWS_AT_ONCE = 8192
"""Rows of one write, to bound memory."""


def save_predictions(evaluation: Evaluation, datasets: Mapping[str, Dataset], folder: Path) -> None:
    """Write TASK.parquet for each task: texts, label, prediction and 2-D PCA of the embedding of every dev row."""
    for name, dataset in datasets.items():
        predictions, plane = evaluation.predictions[name], evaluation.planes.get(name)
        truth = evaluation.truth(dataset)
        with pq.ParquetWriter(answers_in(folder, name), _schema(dataset, predictions, plane)) as writer:
            for start in range(0, len(dataset), ROWS_AT_ONCE):
                rows = range(len(dataset))[start : start + ROWS_AT_ONCE]
                writer.write_table(pa.table(_columns(dataset, rows, truth, predictions, plane), schema=writer.schema))


def _schema(dataset: Dataset, predictions: Predictions, plane: Plane | None) -> pa.Schema:
    labels = dataset.labels
    label = labels.kind.cell_type
    texts = dict.fromkeys(("text", "text2")[: len(dataset.columns)], pa.string())
    more = {name: own for name, (own, _) in labels.kind.saved_columns(labels, predictions[:0]).items()}
    types = {"row": pa.int64(), **texts, "label": label, "prediction": label, **more}
    notes = {"names": json.dumps(labels.names)}
    if plane is not None:
        types |= dict.fromkeys(("pca_1", "pca_2"), pa.float64())
        notes["pca_explained"] = json.dumps(plane.explained)
    return pa.schema(types, notes)


def _columns(
    dataset: Dataset, rows: range, truth: Truth, predictions: Predictions, plane: Plane | None
) -> dict[str, Any]:
    """Columns of predictions/TASK.parquet for a range of rows."""
    part = slice(rows.start, rows.stop)
    targets, predictions = dataset.targets[part], predictions[part]
    sides = zip(*(dataset.texts(row) for row in rows), strict=True)
    columns: dict[str, Any] = {"row": list(rows), **dict(zip(("text", "text2"), sides, strict=False))}
    labels = dataset.labels
    columns["label"] = labels.kind.cells(labels.in_units(targets), labels.names)
    chosen = truth.rows(np.arange(rows.start, rows.stop)).decide(labels.in_units(predictions))
    columns["prediction"] = labels.kind.cells(chosen, labels.names)
    columns |= {name: values for name, (_, values) in labels.kind.saved_columns(labels, predictions).items()}
    if plane is None:
        return columns
    return columns | {"pca_1": plane.points[part, 0], "pca_2": plane.points[part, 1]}
