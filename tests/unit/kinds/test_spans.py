"""Spans and their metrics, against the seqeval package."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval import metrics as reference
from seqeval.metrics.sequence_labeling import get_entities

from weft.kinds.labels import Labels
from weft.kinds.metrics import METRICS, score
from weft.kinds.spans import OUTSIDE, bio_tags, spans_of
from weft.kinds.tags import objects
from weft.kinds.truth import Truth

BIO = (OUTSIDE, "B-a", "I-a", "B-b-c", "I-b-c")
BIOES = (OUTSIDE, *(f"{prefix}-{name}" for name in "ab" for prefix in "BIES"))
BILOU = (OUTSIDE, *(f"{prefix}-{name}" for name in "ab" for prefix in "BILU"))
AS_BIOES = str.maketrans("LU", "ES")


def rows_of(names: tuple[str, ...]) -> st.SearchStrategy[list[tuple[list[int], list[int]]]]:
    """Texts with their true and predicted tags."""
    words = st.lists(st.tuples(*[st.integers(0, len(names) - 1)] * 2), max_size=8)
    return st.lists(words.map(lambda row: ([a for a, _ in row], [b for _, b in row])), min_size=1, max_size=5)


def named(rows: list[list[int]], names: tuple[str, ...]) -> list[list[str]]:
    """Tags as seqeval's default mode reads them: L is E, and U is S."""
    return [[names[i][:1].translate(AS_BIOES) + names[i][1:] for i in row] for row in rows]


@pytest.mark.parametrize("names", [BIO, BIOES, BILOU], ids=["BIO", "BIOES", "BILOU"])
def test_metrics_equal_seqeval(names: tuple[str, ...]) -> None:
    labels = Labels("tags", names)

    @settings(max_examples=500, deadline=None)
    @given(rows_of(names))
    def check(rows: list[tuple[list[int], list[int]]]) -> None:
        true, chosen = [a for a, _ in rows], [b for _, b in rows]
        for row, tags in zip(chosen, named(chosen, names), strict=True):
            found = [(span.type, span.start, span.end - 1) for span in spans_of(row, names)]
            assert found == get_entities(tags)
        targets = objects([np.array(row, dtype=np.int64) for row in true])
        predictions = objects([np.array([[0, 0, tag, 1.0] for tag in row]).reshape(-1, 4) for row in chosen])
        scores = score(labels, labels.kind.default_metrics, targets, predictions)  # type: ignore[arg-type]
        y, p = named(true, names), named(chosen, names)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # texts without any span
            assert scores["entity-f1"] == pytest.approx(reference.f1_score(y, p))
            assert scores["entity-precision"] == pytest.approx(reference.precision_score(y, p))
            assert scores["entity-recall"] == pytest.approx(reference.recall_score(y, p))
        if any(true):
            assert scores["token-accuracy"] == pytest.approx(reference.accuracy_score(y, p))

    check()


def test_plain_tags_are_runs() -> None:
    names = (OUTSIDE, "city", "day")
    assert [tuple(span) for span in spans_of([1, 1, 0, 2, 1], names)] == [("city", 0, 2), ("day", 3, 4), ("city", 4, 5)]


def test_spans_of_characters_become_bio_tags() -> None:
    words = [(0, 3), (4, 9), (10, 12)]
    assert bio_tags(words, [(0, 9, "x")]) == ["B-x", "I-x", "O"]
    assert bio_tags(words, [(5, 6, "x")]) == ["O", "B-x", "O"]
    with pytest.raises(ValueError, match="contains no word"):
        bio_tags(words, [(3, 4, "x")])
    with pytest.raises(ValueError, match="shares a word"):
        bio_tags(words, [(0, 5, "x"), (6, 9, "y")])


@pytest.mark.parametrize("metric", ["entity-f1", "token-accuracy"])
def test_counts_of_rows_equal_repeated_rows(metric: str) -> None:
    """The bootstrap counts rows; that must equal a metric of rows that are there several times."""
    labels = Labels("tags", BIO)
    draws = np.random.default_rng(0)
    targets = objects([draws.integers(5, size=n) for n in (3, 5, 0, 7)])
    rows = [np.c_[np.zeros((len(t), 2)), draws.integers(5, size=len(t)), np.ones(len(t))] for t in targets]
    predictions = objects(rows)
    counts = np.array([2, 0, 1, 3])
    truth = Truth.of(labels, targets)  # type: ignore[arg-type]
    repeated = np.repeat(np.arange(4), counts)
    expected = METRICS[metric].compute(truth.rows(repeated), predictions[repeated])  # type: ignore[arg-type]
    weighted = METRICS[metric].weighted(truth, predictions)  # type: ignore[arg-type]
    assert weighted(counts.astype(np.float64)) == pytest.approx(expected)
