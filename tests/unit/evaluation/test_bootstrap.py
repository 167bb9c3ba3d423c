"""Intervals and paired differences, against scikit-learn, scipy and known distributions."""

import numpy as np
import pytest
from scipy import stats

from weft.data.labels import Targets
from weft.evaluation.bootstrap import difference, draws, interval, paired, resampled, resampled_overall
from weft.evaluation.counted import counted
from weft.evaluation.metrics import METRICS, Predictions
from weft.evaluation.reference import constant, guessing

ROWS = 60


def example(kind: str, seed: int = 0, rows: int = ROWS) -> tuple[Targets, Predictions]:
    """Targets, and predictions that know something of them."""
    draw = np.random.default_rng(seed)
    if kind == "regression":
        targets = draw.integers(0, 6, rows).astype(float)  # many ties
        return targets, np.round(targets + draw.normal(size=rows), 1)
    if kind == "multilabel":
        labels = (draw.random((rows, 3)) < 0.4).astype(float)
        return labels, np.clip(labels * 0.3 + draw.random((rows, 3)) * 0.7, 0, 1)
    classes = 5 if kind == "ordinal" else 2
    numbers = draw.integers(0, classes, rows)
    logits = np.eye(classes)[numbers] + draw.normal(size=(rows, classes))
    return numbers, np.exp(logits) / np.exp(logits).sum(1, keepdims=True)


CASES = [
    (name, kind) for name, metric in METRICS.items() for kind in metric.kinds if (name, kind) != ("auc", "ordinal")
]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_counting_a_row_twice_is_having_it_twice(name: str, kind: str) -> None:
    """Every metric's form for counts equals the library's score of the repeated rows."""
    targets, predictions = example(kind)
    form = counted(name, targets, predictions)
    assert form(np.ones(ROWS)) == pytest.approx(METRICS[name].compute(targets, predictions))
    for counts in draws(ROWS, "test", rounds=20):
        rows = np.repeat(np.arange(ROWS), counts.astype(int))
        assert form(counts) == pytest.approx(METRICS[name].compute(targets[rows], predictions[rows]))


def test_a_metric_without_a_form_is_scored_on_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    targets, predictions = example("regression")
    monkeypatch.setitem(METRICS, "bias", METRICS["mse"].__class__(lambda y, p: float((p - y).mean()), ("regression",)))
    values = resampled(["bias"], targets, predictions, "x", rounds=50)["bias"]
    assert values.std() > 0
    assert values.mean() == pytest.approx((predictions - targets).mean(), abs=0.1)


def test_the_interval_of_an_accuracy_is_that_of_a_binomial() -> None:
    targets, predictions = example("classification", rows=400)
    right = (predictions.argmax(1) == targets).mean()
    found = interval(resampled(["accuracy"], targets, predictions, "x")["accuracy"])
    assert found is not None
    low, high = stats.binom.ppf([0.025, 0.975], 400, right) / 400
    assert found.low == pytest.approx(low, abs=0.01)
    assert found.high == pytest.approx(high, abs=0.01)


def test_the_interval_of_a_correlation_agrees_with_scipy() -> None:
    targets, predictions = example("regression", rows=300)
    found = interval(resampled(["pearson"], targets, predictions, "x")["pearson"])
    theirs = stats.bootstrap(
        (targets, predictions),
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
    targets, first = example("classification", rows=500)
    second = first.copy()
    wrong = np.flatnonzero(first.argmax(1) != targets)[:25]
    second[wrong] = np.eye(2)[targets[wrong]]
    found = paired("accuracy", targets, first, second, "x")
    assert found.value == pytest.approx(25 / 500)
    assert found.is_clear
    assert found.ahead == 1
    assert found.interval is not None
    low, high = stats.binom.ppf([0.025, 0.975], 500, 0.05) / 500  # 25 rows gained, none lost
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high), abs=0.006)
    same = paired("accuracy", targets, first, first, "x")
    assert (same.value, same.ahead, same.is_clear) == (0, 0.5, False)


def test_less_error_is_better() -> None:
    targets, predictions = example("regression")
    worse = predictions + np.random.default_rng(3).normal(size=ROWS)
    assert paired("mse", targets, worse, predictions, "x").value > 0
    assert paired("mse", targets, worse, predictions, "x").ahead > 0.9


def test_an_overall_score_counts_a_correlation_by_half_of_one_and_it() -> None:
    values = resampled_overall(
        {"a": np.array([0.5, 0.7]), "b": np.array([0.0, 1.0])}, {"a": "accuracy", "b": "pearson"}
    )
    assert values.tolist() == [0.5, 0.85]


def test_an_undefined_score_has_no_interval() -> None:
    targets = np.zeros(30)
    values = resampled(["pearson"], targets, np.random.default_rng(0).random(30), "x", rounds=20)["pearson"]
    assert np.isnan(values).all()
    assert interval(values) is None
    assert difference(values, values, float("nan")).interval is None


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_guessing_is_what_random_answers_score(name: str, kind: str) -> None:
    rows = 4000
    targets, predictions = example(kind, rows=rows)
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
            guesses = np.eye(predictions.shape[1])[draw.integers(0, predictions.shape[1], rows)]
        scores.append(METRICS[name].compute(targets, guesses))
    classes = predictions.shape[1] if predictions.ndim == 2 else 0
    tolerance = 0.02 if name != "mse" else 0.1
    assert guessing(name, targets, classes, (0.0, 5.0)) == pytest.approx(np.mean(scores), abs=tolerance)


def test_constant_answers() -> None:
    targets = np.array([0, 1, 1, 2, 1])
    assert constant("accuracy", targets, 3) == 0.6
    assert constant("class-distance", targets, 3) == pytest.approx(0.4)
    numbers = np.array([1.0, 3.0])
    assert constant("mse", numbers, 0) == 1.0
    assert np.isnan(constant("pearson", numbers, 0))
