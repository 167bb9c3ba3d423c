"""What a user may hand to a loaded model, and what comes back."""

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.exported import write_model
from weft.data.readings import TokenSequence
from weft.foundation.errors import UserError
from weft.inference.joint import Ask
from weft.inference.model import Model, load

TASKS = {
    "mood": {"like": "sentiment"},
    "same": {"like": "paraphrase"},
    "near": {"like": "similarity"},
    "tags": {"like": "sentiment", "kind": "multilabel"},
}
FIRST = ["a lovely film", "a dull film", "the cold heron sees a trout"]
SECOND = ["a cat", "the dog", "a heron"]


@pytest.fixture(scope="module")
def folder(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tiny, tmp_path_factory.mktemp("model"), TASKS)


@pytest.fixture(scope="module")
def model(folder: Path) -> Model:
    return load(folder, "cpu")


class Frame:
    """A table as polars has it: its columns by name, each a sequence, and nothing else."""

    def __init__(self, **columns: list[Any]) -> None:
        self.content = columns
        self.columns = list(columns)

    def __getitem__(self, name: str) -> list[Any]:
        return self.content[name]


def generated(texts: list[str]) -> Iterator[str]:
    yield from texts


LISTS: dict[str, Callable[[list[str]], Any]] = {
    "a tuple": tuple,
    "a generator": generated,
    "a numpy array": np.array,
    "a numpy array of objects": lambda texts: np.array(texts, dtype=object),
    "a pandas Series": pd.Series,
    "a Series with an index of its own": lambda texts: pd.Series(texts, index=[7, 5, 3]),
    "a pandas Index": pd.Index,
    "an Arrow array": pa.array,
    "an Arrow column": lambda texts: pa.chunked_array([texts[:1], texts[1:]]),
}


@pytest.mark.parametrize("made", LISTS.values(), ids=LISTS)
def test_all_that_holds_texts_in_order(model: Model, made: Callable[[list[str]], Any]) -> None:
    assert model.predict("mood", made(FIRST)) == model.predict("mood", FIRST)
    assert model.predict("same", made(FIRST), made(SECOND)) == model.predict("same", FIRST, SECOND)
    np.testing.assert_array_equal(model.embed(made(FIRST)), model.embed(FIRST))
    assert model.predict_all(made(FIRST), made(SECOND)) == model.predict_all(FIRST, SECOND)


def test_one_text_gives_one_answer(model: Model) -> None:
    assert model.predict("mood", FIRST[0]) == model.predict("mood", FIRST[:1])[0]
    assert model.predict("same", FIRST[0], SECOND[0]) == model.predict("same", FIRST[:1], SECOND[:1])[0]
    np.testing.assert_array_equal(model.embed(FIRST[0]), model.embed(FIRST[:1])[0])
    together = model.predict_all(FIRST[0], tasks=["mood", "tags"])
    assert together == {task: own[0] for task, own in model.predict_all(FIRST[:1], tasks=["mood", "tags"]).items()}


TABLES: dict[str, Callable[..., Any]] = {
    "a data frame": lambda **columns: pd.DataFrame(columns),
    "an Arrow table": lambda **columns: pa.table(columns),
    "a dictionary": dict,
    "any other": Frame,
}


@pytest.mark.parametrize("made", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("names", [("text", "text2"), ("a", "b")])
def test_a_table_is_read_by_its_text_columns(model: Model, made: Callable[..., Any], names: tuple[str, str]) -> None:
    table = made(**{"id": [1, 2, 3], names[1]: SECOND, names[0]: FIRST})
    assert model.predict("same", table) == model.predict("same", FIRST, SECOND)
    np.testing.assert_array_equal(model.embed(table, "near"), model.embed(FIRST, "near"))
    alone = made(text=FIRST)
    assert model.predict("mood", alone) == model.predict("mood", FIRST)
    both = made(text=FIRST, text2=SECOND)
    assert model.predict_all(both) == model.predict_all(FIRST, SECOND)
    with pytest.raises(UserError, match="the table has no column 'text2'|the table has no column 'a'"):
        model.predict("same", alone)
    with pytest.raises(UserError, match="texts2: goes with a list of texts"):
        model.predict("same", both, SECOND)


class Lazy(Frame):
    """A query that has not run yet."""

    def collect(self) -> Frame:
        return Frame(**self.content)


WRONG: dict[str, tuple[Any, str]] = {
    "None": (None, "texts: found a NoneType, expected a text or a list of texts"),
    "a number": (3.5, "texts: found a float, expected"),
    "bytes": (b"abc", "texts: found a bytes, expected"),
    "a set": ({"a", "b"}, "texts: found a set, expected"),
    "a path": (Path("x.csv"), "expected a text or a list of texts; for a file, use weft.predict_file"),
    "None among texts": (["a", None], r"texts\[1\]: is missing \(None\), expected a text"),
    "NaN among texts": (["a", math.nan], r"texts\[1\]: is missing \(nan\), expected a text"),
    "NA among texts": (pd.Series(["a", pd.NA], dtype="string"), r"texts\[1\]: is missing"),
    "a number among texts": (["a", 5], r"texts\[1\]: found an int, expected a text"),
    "pairs": ([("a", "b")], r"texts\[0\]: found a tuple, expected a text; the second texts of pairs go into texts2"),
    "rows": ([{"text": "a"}], r"texts\[0\]: found a dict, expected a text"),
    "a query": (Lazy(text=["a"]), "found a Lazy, whose rows are not there yet; give what its collect"),
    "two dimensions": (np.array([["a", "b"]]), r"texts\[0\]: found a ndarray, expected a text"),
    "half a character": (["a\ud83d"], r"texts\[0\]: holds half a character \(U\+D83D\)"),
    "a frame with a hole": (pd.DataFrame({"text": ["a", None]}), r"texts\['text'\]\[1\]: is missing"),
    "a frame without texts": (pd.DataFrame({"words": ["a"]}), "no column 'text'; its columns are 'words'"),
}


@pytest.mark.parametrize(("given", "message"), WRONG.values(), ids=WRONG)
def test_what_is_not_a_text_is_said(model: Model, given: Any, message: str) -> None:
    for ask in (
        lambda: model.predict("mood", given),
        lambda: model.embed(given, "mood"),
        lambda: model.predict_all(given, tasks=["mood", "tags"]),
    ):
        with pytest.raises(UserError, match=message):
            ask()


def test_texts_and_tasks_that_do_not_fit(model: Model) -> None:
    for ask, message in (
        (lambda: model.predict("mood", FIRST, SECOND), "task 'mood' reads one text"),
        (lambda: model.predict("same", FIRST), "task 'same' reads two texts"),
        (lambda: model.predict("same", FIRST, SECOND[:2]), "there are 3 first texts, but 2 second ones"),
        (lambda: model.predict("none", FIRST), "the model has no task 'none'"),
        (lambda: model.predict_all(FIRST), "task 'same' reads two texts"),
        (lambda: model.predict_all(FIRST, SECOND, tasks=["mood", "tags"]), "none of the tasks mood, tags reads two"),
        (lambda: model.predict_all(FIRST, tasks=["mood", "mood"]), "expected at least one, each once"),
        (lambda: model.predict_all(FIRST, tasks=[]), "found none, expected at least one"),
    ):
        with pytest.raises(UserError, match=message):
            ask()


def test_no_texts_give_no_answers(model: Model) -> None:
    assert model.predict("mood", []) == []
    assert model.predict("same", [], []) == []
    assert model.embed([]).shape == (0, 16)
    assert model.predict_all([], tasks=["mood", "tags"]) == {"mood": [], "tags": []}


EMPTY = ["a lovely film", "  ", "a dull film", ""]


def test_an_empty_text_is_an_error_unless_said(model: Model) -> None:
    for ask in (lambda: model.predict("mood", EMPTY), lambda: model.embed(EMPTY)):
        with pytest.raises(UserError, match=r'texts\[1\]: is empty \(and 1 more\), expected a text; on_empty = "skip"'):
            ask()
    with pytest.raises(UserError, match=r"texts2\[0\]: is empty, expected a text"):
        model.predict("same", ["a cat"], [""])


def test_skipped_rows_have_no_answer_and_kept_ones_have(model: Model) -> None:
    whole = model.predict("mood", [EMPTY[0], EMPTY[2]])
    skipped = model.predict("mood", EMPTY, on_empty="skip")
    assert [skipped[0].label, skipped[2].label] == [answer.label for answer in whole]
    assert skipped[0].score == pytest.approx(whole[0].score, abs=1e-6)
    assert skipped[1].label is None
    assert math.isnan(skipped[1].score)
    assert skipped[1].as_dict() == {"task": "mood", "label": None, "score": None, "probabilities": {}}
    json.dumps(skipped[1].as_dict(), allow_nan=False)
    near = model.predict("near", ["", "a cat"], ["a dog", "a dog"], on_empty="skip")
    assert near[0].as_dict() == {"task": "near", "score": None}
    assert math.isfinite(near[1].score)
    kept = model.predict("mood", EMPTY, on_empty="keep")
    assert kept[1].label in ("bad", "good")
    vectors = model.embed(EMPTY, on_empty="skip")
    assert np.isnan(vectors).all(axis=1).tolist() == [False, True, False, True]
    assert np.isfinite(model.embed(EMPTY, on_empty="keep")).all()
    assert [answer.label for answer in model.predict("mood", ["", ""], on_empty="skip")] == [None, None]


def test_the_rule_of_training_is_the_rule_of_prediction(tiny: Path, tmp_path: Path) -> None:
    tasks = {}
    for name, rule in (("skipping", "skip"), ("keeping", "keep")):
        tasks[name] = {"like": "sentiment", "data": _data(tiny) | {"on_empty": rule}}
    model = load(write_model(tiny, tmp_path, tasks), "cpu")
    answers = model.predict_all(EMPTY)
    assert [answer.label is None for answer in answers["skipping"]] == [False, True, False, True]
    assert all(answer.label for answer in answers["keeping"])


def _data(tiny: Path) -> dict[str, Any]:
    return {split: str(tiny / "data" / f"sentiment-{split}.tsv") for split in ("train", "dev")}


def test_several_tasks_take_one_pass_with_every_sequence_once(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[list[TokenSequence]] = []
    original = model.engine.together

    def together(asks: list[Ask]) -> Any:
        passes.append([sequence for ask in asks for row in ask.rows for sequence in row])
        return original(asks)

    monkeypatch.setattr(model.engine, "together", together)
    encoded = 0
    body = model.network.body.forward

    def forward(packed: Any, *rest: Any) -> Any:
        nonlocal encoded
        encoded += len(packed.lengths)
        return body(packed, *rest)

    monkeypatch.setattr(model.network.body, "forward", forward)
    answers = model.predict_all(FIRST, SECOND)
    assert len(passes) == 1
    assert list(answers) == list(TASKS)
    # mood, tags and the first side of near read the same three; near reads three more, same reads three pairs
    assert encoded == 9
    monkeypatch.undo()
    for task, own in answers.items():
        alone = model.predict(task, FIRST, SECOND if task in ("same", "near") else None)
        assert [answer.label for answer in own] == [answer.label for answer in alone]
        assert [a.score for a in own] == pytest.approx([a.score for a in alone], abs=1e-6)


def test_a_table_is_scored_like_its_file(tiny: Path, model: Model) -> None:
    path = tiny / "data" / "paraphrase-dev.tsv"
    expected = model.evaluate(files={"same": path}).scores
    assert model.evaluate(files={"same": str(path)}).scores == expected
    frame = pd.read_csv(path, sep="\t")  # whose labels are numbers
    assert model.evaluate(files={"same": frame}).scores == expected
    assert model.evaluate(files={"same": pa.Table.from_pandas(frame)}).scores == expected
    frame.loc[1, "a"] = None
    with pytest.raises(UserError, match=r"row 1 of files\['same'\]: column 'a' is empty"):
        model.evaluate(files={"same": frame})
    for files, message in (
        ({"same": frame.drop(columns="b")}, "there is no column 'b'; the columns are 'a', 'dup'"),
        ({"same": 5}, r"files\['same'\]: found an int, expected a data frame"),
        (path, r"files: expected one for each task, such as files=\{'mood': ...\}"),
        ({"none": frame}, "the model has no task 'none'"),
    ):
        with pytest.raises(UserError, match=message):
            model.evaluate(files=files)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="split 'devel': expected train, dev or test"):
        model.evaluate("devel")
