"""Temperatures and reliability on data whose answer is known."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import accuracy_score

from weft.evaluation.calibration import cross_fitted, fit_temperature, log_loss, reliability
from weft.kinds.classification import Classification
from weft.kinds.multilabel import Multilabel

CLASSES, LABELS = Classification(), Multilabel()


def drawn(temperature: float, rows: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose labels follow softmax(logits), and a model that shows softmax(logits * temperature)."""
    draw = np.random.default_rng(0)
    logits = draw.normal(size=(rows, 3)) * 2
    true = softmax(logits, axis=1)
    targets = (draw.random((rows, 1)) > true.cumsum(1)).sum(1)
    return softmax(logits * temperature, axis=1), targets


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_temperature_that_was_put_in_is_found(temperature: float) -> None:
    predictions, targets = drawn(temperature)
    assert fit_temperature(CLASSES, predictions, targets) == pytest.approx(temperature, rel=0.05)


def test_tempering_keeps_the_order_and_mends_the_error() -> None:
    predictions, targets = drawn(3.0)
    for after in (CLASSES.temper(predictions, 3.0), cross_fitted(CLASSES, predictions, targets)):
        assert (after.argmax(1) == predictions.argmax(1)).all()
        assert after.sum(1) == pytest.approx(1)
        assert reliability(CLASSES, after, targets).error < 0.02
        assert reliability(CLASSES, predictions, targets).error > 0.1
        assert log_loss(CLASSES, after, targets) < log_loss(CLASSES, predictions, targets)
    np.testing.assert_allclose(CLASSES.temper(predictions, 3.0), softmax(np.log(predictions) / 3, axis=1), atol=1e-9)


def test_labels_are_tempered_one_by_one() -> None:
    draw = np.random.default_rng(1)
    logits = draw.normal(size=(20_000, 2)) * 2
    targets = (draw.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(float)
    sharp = 1 / (1 + np.exp(-2 * logits))
    assert fit_temperature(LABELS, sharp, targets) == pytest.approx(2, rel=0.05)
    np.testing.assert_allclose(LABELS.temper(sharp, 2.0), 1 / (1 + np.exp(-logits)), atol=1e-6)
    assert reliability(LABELS, LABELS.temper(sharp, 2.0), targets).error < 0.02


def test_certain_answers_stay_finite() -> None:
    predictions = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    targets = np.array([0, 1, 1])
    assert np.isfinite(CLASSES.temper(predictions, fit_temperature(CLASSES, predictions, targets))).all()


def test_reliability_counts_every_row() -> None:
    predictions, targets = drawn(1.0, rows=500)
    found = reliability(CLASSES, predictions, targets)
    assert found.rows.sum() == 500
    assert (found.rows @ found.right) / 500 == pytest.approx(accuracy_score(targets, predictions.argmax(1)))
