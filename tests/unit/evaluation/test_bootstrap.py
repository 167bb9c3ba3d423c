"""Intervals and paired differences, against scikit-learn, scipy and known distributions."""

from collections.abc import Iterator

import numpy as np
import pytest
from scipy import stats

from weft.evaluation.bootstrap import difference, draws, interval, paired, resampled, resampled_overall
from weft.kinds import KINDS
from weft.kinds.metrics import METRICS
from weft.kinds.truth import Predictions, Truth

ROWS = 60


def example(kind: str, classes: int = 2, positive: int | None = None, rows: int = ROWS) -> tuple[Truth, Predictions]:
    """Labels, and predictions that know something of them."""
    draw = np.random.default_rng(0)
    if kind == "regression":
        numbers = draw.integers(0, 6, rows).astype(float)  # many ties
        return Truth(KINDS[kind], numbers, bounds=(0.0, 5.0)), np.round(numbers + draw.normal(size=rows), 1)
    if kind == "multilabel":
        labels = (draw.random((rows, 3)) < 0.4).astype(float)
        return Truth(KINDS[kind], labels, 3), np.clip(labels * 0.3 + draw.random((rows, 3)) * 0.7, 0, 1)
    targets = np.minimum(draw.integers(0, classes + 1, rows), classes - 1)  # the last class is twice as common
    logits = np.eye(classes)[targets] + draw.normal(size=(rows, classes))
    return Truth(KINDS[kind], targets, classes, positive=positive), np.exp(logits) / np.exp(logits).sum(
        1, keepdims=True
    )


OF_THEIR_OWN = ("tags", "matches")
"""kinds whose metrics are tested on rows of their own form, in tests/unit/kinds"""


def cases() -> Iterator[tuple[str, str, int, int | None]]:
    """Every metric with every kind that it can score, for two classes with either one positive, and for five."""
    for name, metric in METRICS.items():
        for kind in metric.kinds:
            if kind in OF_THEIR_OWN:
                continue
            if kind in ("regression", "multilabel"):
                yield name, kind, 0, None
                continue
            of_two = name in ("auc", "f1-positive")
            for classes, positive in ((2, 0), (2, 1), *(() if of_two else ((5, None),))):
                yield name, kind, classes, positive


CASES = list(cases())


@pytest.mark.parametrize(("name", "kind", "classes", "positive"), CASES)
def test_counting_a_row_twice_is_having_it_twice(name: str, kind: str, classes: int, positive: int | None) -> None:
    """Every metric's weighted form equals the library's score of the repeated rows."""
    truth, predictions = example(kind, classes, positive)
    form = METRICS[name].weighted(truth, predictions)
    assert form(np.ones(ROWS)) == pytest.approx(METRICS[name].compute(truth, predictions))
    for counts in draws(ROWS, "test", rounds=20):
        rows = np.repeat(np.arange(ROWS), counts.astype(int))
        assert form(counts) == pytest.approx(METRICS[name].compute(truth.rows(rows), predictions[rows]))


def test_the_interval_of_an_accuracy_is_that_of_a_binomial() -> None:
    truth, predictions = example("classification", rows=400)
    right = (predictions.argmax(1) == truth.targets).mean()
    found = interval(resampled(["accuracy"], truth, predictions, "x")["accuracy"])
    assert found is not None
    low, high = stats.binom.ppf([0.025, 0.975], 400, right) / 400
    assert found.low == pytest.approx(low, abs=0.01)
    assert found.high == pytest.approx(high, abs=0.01)


def test_the_interval_of_a_correlation_agrees_with_scipy() -> None:
    truth, predictions = example("regression", rows=300)
    found = interval(resampled(["pearson"], truth, predictions, "x")["pearson"])
    theirs = stats.bootstrap(
        (truth.targets, predictions),
        lambda y, p: stats.pearsonr(y, p)[0],
        paired=True,
        vectorized=False,
        n_resamples=1000,
        method="percentile",
        rng=1,
    ).confidence_interval
    assert found is not None
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=0.015)


def test_draws_repeat_and_differ_by_task() -> None:
    one, again, other = (next(draws(ROWS, purpose)) for purpose in ("a", "a", "b"))
    assert one.tolist() == again.tolist() != other.tolist()
    assert one.sum() == ROWS


def test_a_pair_is_compared_on_the_same_rows() -> None:
    """Pairing removes what both models find hard, so the interval is narrower than that of two separate samples."""
    truth, first = example("classification", rows=500)
    targets, second = truth.targets, first.copy()
    wrong = np.flatnonzero(first.argmax(1) != targets)[:25]
    second[wrong] = np.eye(2)[targets[wrong]]
    found = paired("accuracy", (truth, first), (truth, second), "x")
    assert found.value == pytest.approx(25 / 500)
    assert found.is_clear
    assert found.ahead == 1
    assert found.interval is not None
    low, high = stats.binom.ppf([0.025, 0.975], 500, 0.05) / 500  # 25 rows gained, none lost
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high), abs=0.006)
    same = paired("accuracy", (truth, first), (truth, first), "x")
    assert (same.value, same.ahead, same.is_clear) == (0, 0.5, False)


def test_less_error_is_better() -> None:
    truth, predictions = example("regression")
    worse = predictions + np.random.default_rng(3).normal(size=ROWS)
    assert paired("mse", (truth, worse), (truth, predictions), "x").value > 0
    assert paired("mse", (truth, worse), (truth, predictions), "x").ahead > 0.9


def test_an_overall_score_counts_a_correlation_by_half_of_one_and_it() -> None:
    values = resampled_overall(
        {"a": np.array([0.5, 0.7]), "b": np.array([0.0, 1.0])}, {"a": "accuracy", "b": "pearson"}
    )
    assert values.tolist() == [0.5, 0.85]


def test_an_undefined_score_has_no_interval() -> None:
    truth = Truth(KINDS["regression"], np.zeros(30))
    values = resampled(["pearson"], truth, np.random.default_rng(0).random(30), "x", rounds=20)["pearson"]
    assert np.isnan(values).all()
    assert interval(values) is None
    assert difference(values, values, float("nan")).interval is None


@pytest.mark.parametrize(("name", "kind", "classes", "positive"), CASES)
def test_the_random_baseline_is_what_random_answers_score(
    name: str, kind: str, classes: int, positive: int | None
) -> None:
    rows = 4000
    truth, predictions = example(kind, classes, positive, rows=rows)
    draw = np.random.default_rng(5)
    scores = []
    for _ in range(5):
        if kind == "regression":
            guesses = draw.uniform(0, 5, rows)
        elif kind == "multilabel":
            guesses = draw.random(predictions.shape)
        elif name == "auc":
            guesses = np.stack([1 - (p := draw.random(rows)), p], axis=1)
        else:
            guesses = np.eye(classes)[draw.integers(0, classes, rows)]
        scores.append(METRICS[name].compute(truth, guesses))
    tolerance = 0.02 if name != "mse" else 0.1
    assert METRICS[name].random(truth) == pytest.approx(np.mean(scores), abs=tolerance)


def test_the_random_error_of_numbers_without_a_range_is_unknown() -> None:
    assert np.isnan(METRICS["mse"].random(Truth(KINDS["regression"], np.array([1.0, 2.0]))))


@pytest.mark.parametrize(
    ("name", "positive", "expected"),
    [
        ("accuracy", None, 0.6),
        ("class-distance", None, 0.4),
        ("balanced-accuracy", None, 1 / 3),
        ("precision", None, 0.6 / 3),
        ("recall", None, 1 / 3),
        ("f1", None, 0.75 / 3),
        ("mcc", None, 0.0),
    ],
)
def test_always_the_majority_class(name: str, positive: int | None, expected: float) -> None:
    truth = Truth(KINDS["ordinal"], np.array([0, 1, 1, 2, 1]), 3, positive=positive)
    assert METRICS[name].majority(truth) == pytest.approx(expected)


@pytest.mark.parametrize(("positive", "expected"), [(0, (0.0, 0.0, 0.0)), (1, (2 / 3, 1.0, 0.8))])
def test_the_majority_class_of_two(positive: int, expected: tuple[float, float, float]) -> None:
    truth = Truth(KINDS["classification"], np.array([1, 0, 1]), 2, positive=positive)
    found = [METRICS[name].majority(truth) for name in ("precision", "recall", "f1-positive")]
    assert found == pytest.approx(expected)
    assert METRICS["auc"].majority(truth) == 0.5


def test_always_the_mean() -> None:
    truth = Truth(KINDS["regression"], np.array([1.0, 3.0]))
    assert METRICS["mse"].majority(truth) == 1.0
    assert np.isnan(METRICS["pearson"].majority(truth))


def test_the_interval_of_a_correlation_stays_below_one() -> None:
    numbers = np.linspace(0, 1e-3, 50) + 100
    values = resampled(["pearson"], Truth(KINDS["regression"], numbers), 3 * numbers, "x", rounds=100)["pearson"]
    assert values.max() <= 1
