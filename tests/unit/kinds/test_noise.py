"""Label errors: cleanlab's flags against a derivation, and predictions that never saw their own row."""

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from weft.kinds import KINDS
from weft.kinds.labels import Labels
from weft.kinds.noise import class_probabilities, numbers, suspicious_classes, suspicious_numbers
from weft.kinds.tags import objects


def test_flags_follow_confident_learning() -> None:
    """Northcutt et al. (2021) with two classes, worked out here: thresholds, confident joint, prune by noise rate."""
    draw = np.random.default_rng(0)
    true = np.arange(200) % 2
    given = true.copy()
    wrong = draw.choice(200, 20, replace=False)
    given[wrong] = 1 - given[wrong]
    sure = np.clip(draw.normal(0.8, 0.12, 200), 0.01, 0.99)
    probabilities = np.stack([np.where(true == 0, sure, 1 - sure), np.where(true == 1, sure, 1 - sure)], axis=1)
    threshold = [probabilities[given == k, k].mean() for k in (0, 1)]
    joint = np.zeros((2, 2))
    for row in range(200):
        above = [k for k in (0, 1) if probabilities[row, k] >= threshold[k]]
        if above:
            joint[given[row], max(above, key=lambda k: probabilities[row, k])] += 1
    np.fill_diagonal(joint, np.maximum(joint.diagonal(), 1))
    calibrated = joint / joint.sum(1, keepdims=True) * np.bincount(given)[:, None]
    expected = set()
    for k in (0, 1):
        count = round(calibrated[k, 1 - k])
        margins = np.where(given == k, probabilities[:, 1 - k] - probabilities[:, k], -np.inf)
        expected |= {int(row) for row in np.argsort(-margins)[:count] if margins[row] > 0}
    found = set(np.flatnonzero(suspicious_classes(given, probabilities).flagged).tolist())
    assert len(found ^ expected) <= 2  # the rounding of counts differs by at most one for each class
    assert len(found & set(wrong.tolist())) >= 15


def test_predictions_are_out_of_sample() -> None:
    draw = np.random.default_rng(1)
    features, targets = draw.normal(size=(60, 3)).astype(np.float32), draw.integers(0, 3, 60)
    folds = np.arange(60) % 4
    found = class_probabilities(features, targets, 3, folds)
    for fold in range(4):
        model = LogisticRegression(max_iter=300, tol=1e-3).fit(features[folds != fold], targets[folds != fold])
        assert found[folds == fold] == pytest.approx(model.predict_proba(features[folds == fold]))


def test_a_class_that_no_fit_saw_gets_probability_zero() -> None:
    targets = np.array([0, 1] * 10 + [2])
    found = class_probabilities(np.random.default_rng(2).normal(size=(21, 2)).astype(np.float32), targets, 4, targets)
    assert found[20, 2] == 0
    assert found[:, 3].sum() == 0
    assert found.sum(axis=1) == pytest.approx(1)


def test_far_residuals_are_suspect() -> None:
    draw = np.random.default_rng(4)
    features = draw.normal(size=(200, 2)).astype(np.float32)
    targets = (features @ [1.0, -2.0] + draw.normal(0, 0.1, 200)).astype(np.float64)
    targets[[3, 77]] += 3
    found = suspicious_numbers(targets, numbers(features, targets, np.arange(200) % 5))
    assert {3, 77} <= set(np.flatnonzero(found.flagged).tolist())
    assert found.flagged.sum() <= 6
    assert set(np.argsort(found.quality)[:2].tolist()) == {3, 77}
    assert not suspicious_numbers(targets, targets).flagged.any()


def test_matches_never_contradict() -> None:
    kind, pairs = KINDS["matches"], np.arange(20).reshape(10, 2)
    assert not kind.differ(Labels("matches"), pairs, pairs[::-1]).any()
    assert len(np.unique(kind.groups(Labels("matches"), pairs))) == 1


def test_tags_contradict_if_a_word_does() -> None:
    kind, labels = KINDS["tags"], Labels("tags", ("O", "x"))
    targets: Any = objects([np.array(row) for row in ([0, 1], [0, 1], [1, 1], [0, 1, 1])])
    assert kind.differ(labels, targets, targets[[1, 0, 3, 2]]).tolist() == [False, False, True, True]
    groups = kind.groups(labels, targets)
    assert groups[0] == groups[1]
    assert len(np.unique(groups)) == 3


SEARCHED = [kind for kind in KINDS.values() if kind.why_no_suspects is None]


@pytest.mark.parametrize("kind", SEARCHED, ids=lambda kind: kind.name)
def test_every_kind_finds_planted_errors(kind) -> None:  # type: ignore[no-untyped-def]
    labels = {
        "multilabel": Labels("multilabel", ("a", "b")),
        "regression": Labels("regression", low=0, high=5, scaled=True),
    }.get(kind.name, Labels(kind.name, ("a", "b")))
    draw = np.random.default_rng(5)
    features = draw.normal(size=(160, 2)).astype(np.float32)
    clear = (np.tanh(3 * features) + 1) / 2
    line = (features[:, 0] / 8 + 0.5).astype(np.float64)
    targets = {"multilabel": (clear > 0.5).astype(np.float64), "regression": line}.get(
        kind.name, (clear[:, 0] > 0.5).astype(np.int64)
    )
    wrong = [row for row in range(160) if abs(clear[row, 0] - 0.5) > 0.45][:5]
    targets[wrong] = np.where(targets[wrong] > 0.5, targets[wrong] - 1, targets[wrong] + 1)
    predictions = kind.cross_predict(labels, targets, features, np.arange(160) % 5)
    found = kind.suspects(targets, predictions)
    assert found.flagged[wrong].all()
    assert found.flagged.sum() < 50
    assert kind.differ(labels, np.zeros_like(targets), np.ones_like(targets)).all()
    assert not kind.differ(labels, targets, targets).any()
    assert len(kind.groups(labels, targets)) == 160
