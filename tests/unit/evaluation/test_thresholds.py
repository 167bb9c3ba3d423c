"""The best threshold by brute force, and cross-fitted tuning on data whose answer is known."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn import metrics as sk

from weft.evaluation.thresholds import LEAST, OBJECTIVES, best_threshold, few_rows, tune
from weft.kinds.labels import Labels
from weft.kinds.truth import Truth

REFERENCES: dict[str, Callable[..., float]] = {
    "accuracy": sk.accuracy_score,
    "balanced-accuracy": sk.balanced_accuracy_score,
    "f1": partial(sk.f1_score, average="macro", zero_division=0),
    "f1-positive": partial(sk.f1_score, zero_division=0),
    "mcc": sk.matthews_corrcoef,
}
TWO = Labels("classification", ("no", "yes"))
MANY = Labels("multilabel", ("a", "b", "c"))
Scores = NDArray[np.float64]


@pytest.mark.parametrize("by", OBJECTIVES)
def test_no_threshold_is_better_than_the_best(by: str) -> None:
    draw = np.random.default_rng(2)
    true = draw.random(80) < 0.3
    scores = np.round(np.clip(draw.normal(0.3 + 0.2 * true, 0.15), 0.01, 0.99), 2)
    found = best_threshold(scores, true, by)
    measure = REFERENCES[by]
    assert measure(true, scores > found.value) == pytest.approx(found.score)
    assert found.score == pytest.approx(max(measure(true, scores > t) for t in np.linspace(0.001, 0.999, 999)))
    assert not np.isclose(scores, found.value).any()


def test_equally_good_thresholds_stay_near_one_half() -> None:
    assert best_threshold(np.array([0.1, 0.2, 0.9]), np.array([False, False, True]), "f1-positive").value == 0.55
    # every row has the label: the threshold is below all of them, but not 0
    assert best_threshold(np.array([0.2, 0.4]), np.array([True, True]), "f1-positive").value == pytest.approx(0.1)
    assert best_threshold(np.array([0.0, 0.4]), np.array([True, True]), "f1-positive").value > 0


def noise(rows: int, share: float, seed: int = 5) -> tuple[NDArray[np.float64], Scores]:
    """Labels and scores that have nothing to do with each other."""
    draw = np.random.default_rng(seed)
    return (draw.random((rows, 3)) < share).astype(np.float64), draw.random((rows, 3))


def test_cross_fitted_scores_do_not_reward_noise() -> None:
    """On noise nothing is better than to say yes always: only the naive score claims more."""
    found = []
    for seed in range(30):
        targets, scores = noise(200, 0.15, seed)
        tuned = tune(Truth.of(MANY, targets), ("f1",), scores)
        chosen = Truth.of(MANY, targets, tuned.cross_fitted).decide(scores)
        honest, always = (
            sk.f1_score(targets, y, average="macro", zero_division=0) for y in (chosen, np.ones_like(targets))
        )
        found.append([tuned.naive["f1"], honest, always])
    naive, honest, always = np.mean(found, axis=0)
    assert naive > always + 0.02
    assert honest < always


def test_a_row_is_decided_without_its_own_label() -> None:
    """Changing the labels of one row changes the thresholds of other folds only, never its own."""
    targets, scores = noise(120, 0.4)
    before = tune(Truth.of(MANY, targets), ("f1",), scores).cross_fitted
    changed = 0
    for row in range(20):
        other = targets.copy()
        other[row] = 1 - other[row]
        after = tune(Truth.of(MANY, other), ("f1",), scores).cross_fitted
        own = (before == before[row]).all(axis=1)  # the rows of its fold have the same thresholds
        assert 120 / 5 - 1 <= own.sum() <= 120 / 5 + 1
        assert (after[own] == before[own]).all()
        changed += int((after != before).any())
    assert changed > 5


def test_thresholds_shift_scores_that_are_too_low_back() -> None:
    """Probabilities divided by four rank as before: tuning finds the threshold 1/8 in place of 1/2."""
    draw = np.random.default_rng(6)
    p = draw.random((4000, 3))
    targets = (draw.random((4000, 3)) < p**3 / (p**3 + (1 - p) ** 3)).astype(np.float64)
    tuned = tune(Truth.of(MANY, targets), ("f1-micro", "f1"), p / 4)
    assert tuned.default["f1"] == 0
    best = tune(Truth.of(MANY, targets), ("f1-micro", "f1"), p)
    assert np.allclose(tuned.final * 4, best.final, atol=1e-9)
    assert tuned.naive["f1"] > 0.75
    assert not tuned.kept.any()


def test_labels_with_few_rows_keep_the_default() -> None:
    targets = np.zeros((60, 3))
    targets[: LEAST - 1, 0] = 1
    targets[:LEAST, 1] = 1
    targets[: 60 - LEAST + 1, 2] = 1
    scores = np.random.default_rng(7).random((60, 3)) / 3
    tuned = tune(Truth.of(MANY, targets), ("f1",), scores)
    assert tuned.kept.tolist() == few_rows(Truth.of(MANY, targets)).tolist() == [True, False, True]
    assert tuned.final[0] == tuned.final[2] == 0.5 != tuned.final[1]
    assert (tuned.cross_fitted[:, [0, 2]] == 0.5).all()
    assert (tuned.cross_fitted[:, 1] != 0.5).all()


def two_classes() -> tuple[NDArray[np.int64], Scores]:
    draw = np.random.default_rng(8)
    targets = (draw.random(300) < 0.2).astype(np.int64)
    yes = np.clip(draw.normal(0.2 + 0.2 * targets, 0.12), 0.01, 0.99)
    return targets, np.stack([1 - yes, yes], axis=1)


@pytest.mark.parametrize("primary", OBJECTIVES)
def test_two_classes_are_tuned_for_their_primary_metric(primary: str) -> None:
    targets, scores = two_classes()
    labels = TWO.with_positive("yes", "positive")
    tuned = tune(Truth.of(labels, targets), (primary,), scores)
    best = max(REFERENCES[primary](targets, scores[:, 1] > t) for t in scores[:, 1])
    assert tuned.naive[primary] == pytest.approx(best)


def test_the_positive_class_may_be_the_first() -> None:
    targets, scores = two_classes()
    truth = Truth.of(TWO.with_positive("no", "positive"), targets)
    tuned = tune(truth, ("f1-positive",), scores)
    best = max(sk.f1_score(targets == 0, scores[:, 1] <= t) for t in scores[:, 1])
    assert tuned.naive["f1-positive"] == pytest.approx(best)
    # a ranking metric has no threshold of its own: F1 of the positive class decides
    assert tune(truth, ("auc",), scores).final.tolist() == tuned.final.tolist()


def test_folds_are_those_of_every_seed() -> None:
    targets, scores = two_classes()
    first, again = (tune(Truth.of(TWO, targets), ("f1",), scores).cross_fitted for _ in range(2))
    assert np.array_equal(first, again)
    assert first.shape == (300, 1)


@pytest.mark.parametrize("temperature", [0.4, 2.5])
def test_thresholds_move_with_the_temperature(temperature: float) -> None:
    """Calibration changes no decision."""
    _, scores = two_classes()
    for labels, p in ((TWO, scores), (MANY, noise(200, 0.3)[1])):
        cuts = (0.31,) if labels is TWO else (0.2, 0.5, 0.7)
        kind, own = labels.kind, Labels(labels.kind, labels.names, thresholds=cuts)
        moved = own.tempered(temperature)
        assert moved.thresholds is not None
        assert moved.thresholds != cuts
        plain = kind.decide(p, np.array(cuts))
        assert np.array_equal(kind.decide(kind.temper(p, temperature), np.array(moved.thresholds)), plain)
        assert [kind.answer(moved, row)[0] for row in kind.temper(p, temperature)] == kind.cells(plain, labels.names)
    assert TWO.tempered(temperature) is TWO


def test_thresholds_by_row_follow_their_rows() -> None:
    targets, scores = two_classes()
    truth = Truth.of(TWO, targets, tune(Truth.of(TWO, targets), ("f1-positive",), scores).cross_fitted)
    rows = np.array([7, 7, 250, 3])
    assert np.array_equal(truth.rows(rows).decide(scores[rows]), truth.decide(scores)[rows])
    saved = Truth.of(Labels(TWO.kind, TWO.names, thresholds=(0.3,)), targets)
    assert np.array_equal(saved.rows(rows).decide(scores[rows]), (scores[rows, 1] > 0.3).astype(int))
