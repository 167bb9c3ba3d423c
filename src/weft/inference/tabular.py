"""Add predictions to a table as new columns, using the table's own library."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weft.data.empty import OnEmpty
from weft.data.files import require_columns
from weft.data.frames import Frame, Table, column_of, frame_of
from weft.data.tables import choose_columns
from weft.inference.bulk.kept import output_names
from weft.inference.prediction import Prediction

if TYPE_CHECKING:
    from weft.inference.model import Model


def predict_frame(model: "Model", given: Table, tasks: Sequence[str] | None, on_empty: OnEmpty | None) -> Any:
    """Implement `Model.predict_frame`."""
    frame = frame_of(given, "frame")
    sides = {task: _sides(frame, model.columns(task)) for task in model.choose(tasks)}
    answers = _columns(model, model.answer(sides, on_empty))
    names = output_names(list(frame.keys), list(answers))
    renamed = {frame.keys[name]: new for name, new in names.items() if new != name}
    library = _library(given)
    if library == "pandas":
        return given.rename(columns=renamed).assign(**answers)
    if library == "polars":
        return given.rename(renamed).hstack(type(given)(answers))
    if library == "pyarrow":
        kept = {new: given[name] for name, new in names.items()}
        return pa.table(kept | answers)
    plain = {new: list(column_of(frame.table, frame.keys[name], frame.name)) for name, new in names.items()}
    return _made(plain | answers)


def _sides(frame: Frame, own: list[str]) -> list[list[str]]:
    """Return the texts of each text column, read like those of a file."""
    columns = choose_columns(list(frame.keys), own)
    require_columns(frame, list(frame.keys), columns)
    rows = list(frame.only(columns).rows())
    return [[row[name] for row in rows] for name in columns]


def _columns(model: "Model", answers: Mapping[str, Sequence[Prediction]]) -> dict[str, list[Any]]:
    """Return the column TASK of each task and, for tasks with labels, TASK_score."""
    columns: dict[str, list[Any]] = {}
    for task, own in answers.items():
        scores = [None if math.isnan(answer.score) else answer.score for answer in own]
        labels = model.labels[task]
        if "label" in dict(labels.kind.answer_columns(labels)):
            columns[task] = [answer.label for answer in own]
            columns[f"{task}_score"] = scores
        else:
            columns[task] = scores
    return columns


def _library(given: Table) -> str:
    """Return the library of the table's type or of a base class: pandas, polars, pyarrow, or an empty string."""
    packages = [base.__module__.partition(".")[0] for base in type(given).__mro__]
    return next((name for name in ("pandas", "polars", "pyarrow") if name in packages), "")


def _made(columns: dict[str, list[Any]]) -> Any:
    """Return a pandas data frame if pandas is installed, otherwise an Arrow table."""
    try:
        import pandas as pd
    except ImportError:
        return pa.table(columns)
    return pd.DataFrame(columns)
