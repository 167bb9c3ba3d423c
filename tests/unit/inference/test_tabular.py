"""Answers beside the columns of a table, and what results look like when they are printed."""

import math
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from tests.exported import write_model
from weft.evaluation.scoring import Evaluation
from weft.foundation.errors import UserError
from weft.inference.model import Model, load
from weft.inference.prediction import Prediction

TASKS = {
    "mood": {"like": "sentiment"},
    "near": {"like": "similarity"},
    "tags": {"like": "sentiment", "kind": "multilabel"},
}
TEXTS = ["a lovely film", "a dull film", "the cold heron"]
COLUMNS: dict[str, list[Any]] = {"id": [3, 1, 2], "text": TEXTS, "text2": ["a cat", "the dog", "a heron"]}


@pytest.fixture(scope="module")
def model(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Model:
    return load(write_model(tiny, tmp_path_factory.mktemp("tabular"), TASKS), "cpu")


def expected(model: Model) -> dict[str, list[Any]]:
    answers = model.predict_all(TEXTS, COLUMNS["text2"])
    found: dict[str, list[Any]] = {}
    for task, own in answers.items():
        if task == "near":
            found[task] = [answer.score for answer in own]
        else:
            found |= {task: [answer.label for answer in own], f"{task}_score": [answer.score for answer in own]}
    return found


def test_pandas_in_pandas_out(model: Model) -> None:
    frame = pd.DataFrame(COLUMNS, index=[7, 7, 5])
    before = frame.copy()
    found = model.predict_frame(frame)
    assert isinstance(found, pd.DataFrame)
    assert list(found.columns) == ["id", "text", "text2", "mood", "mood_score", "near", "tags", "tags_score"]
    assert list(found.index) == [7, 7, 5]
    for name, values in expected(model).items():
        assert found[name].to_list() == values
    pd.testing.assert_frame_equal(frame, before)


def test_polars_in_polars_out(model: Model) -> None:
    polars = pytest.importorskip("polars")
    found = model.predict_frame(polars.DataFrame(COLUMNS), tasks=["mood", "tags"])
    assert isinstance(found, polars.DataFrame)
    assert found.columns == ["id", "text", "text2", "mood", "mood_score", "tags", "tags_score"]
    assert found["tags"].to_list() == expected(model)["tags"]


def test_arrow_in_arrow_out(model: Model) -> None:
    found = model.predict_frame(pa.table(COLUMNS), tasks="near")
    assert isinstance(found, pa.Table)
    assert found.column_names == ["id", "text", "text2", "near"]
    assert found["near"].to_pylist() == expected(model)["near"]


def test_other_tables_give_pandas_or_arrow(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]
    for given in (COLUMNS, rows):
        found = model.predict_frame(given)
        assert isinstance(found, pd.DataFrame)
        assert found["mood"].to_list() == expected(model)["mood"]
    monkeypatch.setitem(sys.modules, "pandas", None)  # as if it were not installed
    found = model.predict_frame(rows)
    assert isinstance(found, pa.Table)
    assert found["id"].to_pylist() == [3, 1, 2]


def test_columns_that_are_there_already_keep_their_values(model: Model) -> None:
    frame = pd.DataFrame({"text": TEXTS, "mood": ["x", "y", "z"], "input_mood": [1, 2, 3]})
    found = model.predict_frame(frame, tasks=["mood"])
    assert list(found.columns) == ["text", "input_input_mood", "input_mood", "mood", "mood_score"]
    assert found["input_input_mood"].to_list() == ["x", "y", "z"]
    assert found["input_mood"].to_list() == [1, 2, 3]


def test_missing_texts_are_empty_ones(model: Model) -> None:
    frame = pd.DataFrame({"text": ["a lovely film", None, math.nan]})
    with pytest.raises(UserError, match=r"texts\[1\]: is empty \(and 1 more\)"):
        model.predict_frame(frame, tasks=["mood"])
    found = model.predict_frame(frame, tasks=["mood", "tags"], on_empty="skip")
    assert found["mood"].isna().to_list() == [False, True, True]
    assert found["mood_score"].isna().to_list() == [False, True, True]


def test_tables_that_cannot_be_answered(model: Model) -> None:
    for given, message in (
        (pd.DataFrame({"words": ["a"]}), "frame: there is no column 'text'; the columns are 'words'"),
        (["a text"], "frame: found a list, expected a data frame"),
    ):
        with pytest.raises(UserError, match=message):
            model.predict_frame(given, tasks=["mood"])
    with pytest.raises(UserError, match="the model has no task 'moods'"):
        model.predict_frame(pd.DataFrame(COLUMNS), tasks=["moods"])
    empty = model.predict_frame(pd.DataFrame({"text": []}), tasks=["mood"])
    assert list(empty.columns) == ["text", "mood", "mood_score"]
    assert len(empty) == 0


def test_a_prediction_is_readable() -> None:
    assert repr(Prediction("stars", "5", 0.93, {"5": 0.93, "1": 0.07})) == "Prediction(stars: '5', 0.93)"
    assert repr(Prediction("urgency", None, 3.4159, None)) == "Prediction(urgency: 3.42)"
    assert repr(Prediction("tags", ["plot"], 0.8, {"plot": 0.8})) == "Prediction(tags: ['plot'], 0.8)"
    assert repr(Prediction("stars", None, math.nan, {})) == "Prediction(stars: no answer)"


def test_notebooks_show_escaped_tables(model: Model) -> None:
    page = model._repr_html_()
    assert "<td>mood</td><td>classification</td><td>single</td><td>one of bad, good</td>" in page
    assert "http" not in page
    hostile = Evaluation(1, {"<script>alert(1)</script>": {"accuracy": 0.5, "n": 4}}, 0.5, {})
    assert "<td>&lt;script&gt;alert(1)&lt;/script&gt;</td>" in hostile._repr_html_()
    assert "<script>" not in hostile._repr_html_()
    assert "<td>0.500</td>" in hostile._repr_html_()
