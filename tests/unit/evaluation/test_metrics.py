import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from weft.data.labels import Labels
from weft.errors import UserError
from weft.evaluation import metrics
from weft.evaluation.metrics import DEFAULTS, METRICS, choose_metrics, overall, score


def test_classes() -> None:
    probabilities = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7]])
    scores = score(
        Labels("classification", ("a", "b")), ["accuracy", "f1", "auc"], np.array([0, 1, 1, 1]), probabilities
    )
    assert scores["accuracy"] == 0.75
    assert scores["f1"] == pytest.approx((2 / 3 + 4 / 5) / 2)
    assert scores["auc"] == 1.0
    assert scores["n"] == 4


def test_numbers_are_scored_in_their_own_units() -> None:
    labels = Labels("regression", low=0, high=5, scaled=True)
    scores = score(labels, DEFAULTS["regression"], np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.5, 0.8]))
    assert scores["mse"] == pytest.approx(1 / 3)
    assert scores["pearson"] == pytest.approx(np.corrcoef([0, 2.5, 5], [0, 2.5, 4])[0, 1])
    assert scores["spearman"] == pytest.approx(1)


def test_the_overall_score_is_the_one_of_the_three_tasks() -> None:
    scores = {"s": {"accuracy": 0.5}, "p": {"accuracy": 0.8}, "t": {"pearson": 0.6}}
    primary = {"s": "accuracy", "p": "accuracy", "t": "pearson"}
    assert overall(scores, primary) == pytest.approx((0.5 + 0.8 + (1 + 0.6) / 2) / 3)


def test_a_constant_prediction_has_no_correlation_and_no_overall() -> None:
    scores = score(Labels("regression"), ["pearson"], np.array([0.0, 1.0, 0.5]), np.array([0.3, 0.3, 0.3]))
    assert math.isnan(scores["pearson"])
    assert math.isnan(overall({"t": scores}, {"t": "pearson"}))


def test_ordered_classes() -> None:
    probabilities = np.eye(3)[[0, 2, 1, 0]]
    scores = score(
        Labels("ordinal", ("a", "b", "c")), ["class-distance", "kappa"], np.array([0, 2, 2, 2]), probabilities
    )
    assert scores["class-distance"] == 0.75
    assert 0 < scores["kappa"] < 1


def test_several_labels() -> None:
    targets = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    probabilities = np.array([[0.9, 0.2], [0.8, 0.3], [0.1, 0.4]])
    scores = score(Labels("multilabel", ("a", "b")), DEFAULTS["multilabel"], targets, probabilities)
    assert scores["accuracy"] == pytest.approx(2 / 3)
    assert scores["f1-micro"] == pytest.approx(0.8)
    assert scores["f1"] == pytest.approx(0.5)


def test_an_area_that_is_not_defined() -> None:
    one_class = score(Labels("classification", ("a", "b")), ["auc"], np.array([1, 1]), np.array([[0.5, 0.5]] * 2))
    assert math.isnan(one_class["auc"])


@pytest.mark.parametrize("kind", DEFAULTS)
def test_the_defaults_of_a_kind_fit_it(kind: str) -> None:
    assert all(kind in METRICS[name].kinds for name in DEFAULTS[kind])
    assert not METRICS[DEFAULTS[kind][0]].lower_is_better


@pytest.mark.parametrize(
    ("wanted", "message"), [(["f2"], "found 'f2', expected some of pearson"), (["mse"], "cannot stand there")]
)
def test_metrics_that_do_not_fit(wanted: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        choose_metrics(Labels("regression"), wanted, "t")


def test_the_area_needs_two_classes() -> None:
    with pytest.raises(UserError, match="'auc' is for two classes, but the task has 3"):
        choose_metrics(Labels("classification", ("a", "b", "c")), ["auc"], "t")


@settings(max_examples=100)
@given(st.data(), st.integers(2, 5), st.integers(1, 40))
def test_counted_in_blocks_is_what_sklearn_says_row_by_row(data: st.DataObject, classes: int, rows: int) -> None:
    a_class = st.lists(st.integers(0, classes - 1), min_size=rows, max_size=rows)
    true, chosen = np.array(data.draw(a_class)), np.array(data.draw(a_class))
    names = ["accuracy", "f1", "class-distance"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "BLOCK", 7)
        found = score(Labels("ordinal", tuple("abcde"[:classes])), names, true, np.eye(classes)[chosen])
    expected = {
        "accuracy": sk.accuracy_score(true, chosen),
        "f1": sk.f1_score(true, chosen, average="macro", zero_division=0),
        "class-distance": np.abs(true - chosen).mean(),
        "n": rows,
    }
    assert found == pytest.approx(expected, abs=1e-12)
    if len({*true, *chosen}) > 1:  # with one class alone kappa is 0 / 0
        kappa = METRICS["kappa"].compute(true, np.eye(classes)[chosen])
        assert kappa == pytest.approx(sk.cohen_kappa_score(true, chosen, weights="quadratic"), abs=1e-12)
