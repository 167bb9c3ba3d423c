"""Metrics of tags: spans counted over all texts, and words."""

from collections.abc import Callable

import numpy as np

from weft.foundation.randomness import generator
from weft.kinds.counted import Numbers
from weft.kinds.forms import Form, Means
from weft.kinds.spans import spans_of
from weft.kinds.truth import Predictions, Truth

Row = Callable[[Truth, int, list[int]], tuple[float, float, float]]
"""(truth, row, predicted tags) -> correct, predicted and true spans or words of the row"""


def counted_spans(truth: Truth, row: int, tags: list[int]) -> tuple[float, float, float]:
    """A span is correct if its type, first word and last word are."""
    true, own = set(spans_of(truth.targets[row], truth.names)), set(spans_of(tags, truth.names))
    return len(true & own), len(own), len(true)


def counted_words(truth: Truth, row: int, tags: list[int]) -> tuple[float, float, float]:
    true = truth.targets[row]
    return float((true == np.array(tags, dtype=np.int64)).sum()), len(tags), len(true)


def of_words(count: Row, finish: Callable[[Numbers, Numbers, Numbers], Numbers]) -> Form:
    """A metric of the counts of all rows: micro-averaged, as seqeval's default."""

    def columns(truth: Truth, predictions: Predictions) -> Numbers:
        chosen = truth.kind.decide(predictions)
        rows = [count(truth, row, tags.tolist()) for row, tags in enumerate(chosen)]
        return np.array(rows, dtype=np.float64).reshape(len(truth), 3)

    means = Means(columns, lambda values: finish(values[..., 0], values[..., 1], values[..., 2]))

    def compute(truth: Truth, predictions: Predictions) -> float:
        return float(means.finish(columns(truth, predictions).sum(axis=0)))

    def random(truth: Truth) -> float:
        """The metric of one draw of uniform tags, the same in every run."""
        drawn = generator(0, "tags", len(truth))
        rows = [count(truth, row, _drawn(drawn, truth, row)) for row in range(len(truth))]
        return float(means.finish(np.array(rows, dtype=np.float64).sum(axis=0)))

    return Form(compute, means.weighted, random, means)


def _drawn(draws: np.random.Generator, truth: Truth, row: int) -> list[int]:
    tags: list[int] = draws.integers(truth.classes, size=len(truth.targets[row])).tolist()
    return tags


def _ratio(part: Numbers, whole: Numbers) -> Numbers:
    """part / whole; 0 where whole is 0, as in seqeval"""
    found: Numbers = np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
    return found


def f1(right: Numbers, predicted: Numbers, true: Numbers) -> Numbers:
    return _ratio(2 * right, predicted + true)


def precision(right: Numbers, predicted: Numbers, true: Numbers) -> Numbers:  # noqa: ARG001
    return _ratio(right, predicted)


def recall(right: Numbers, predicted: Numbers, true: Numbers) -> Numbers:  # noqa: ARG001
    return _ratio(right, true)
