"""The loss of the best constant answer, against closed forms."""

import numpy as np
import pytest

from weft.kinds.labels import Labels
from weft.losses import LossConfig
from weft.losses.binary_cross_entropy import BinaryCrossEntropyConfig
from weft.losses.cross_entropy import CrossEntropyConfig
from weft.losses.dual_objective import DualObjectiveConfig
from weft.losses.in_batch_negatives import InBatchNegativesConfig
from weft.losses.mse import MeanSquaredErrorConfig
from weft.nn.heads.base import Bounds
from weft.tasks.constant import constant_loss, scale_notes

THREE = Labels("classification", ("a", "b", "c"))
TWO = Labels("classification", ("no", "yes"))
P = np.array([0.5, 0.3, 0.2])
ENTROPY = float(-(P * np.log(P)).sum())
EACH = float(-(P * np.log(P) + (1 - P) * np.log(1 - P)).sum())
COIN = float(-(0.3 * np.log(0.3) + 0.7 * np.log(0.7)))
NUMBERS = np.array([0.0, 0.2, 0.9, 1.0], dtype=np.float32)


@pytest.mark.parametrize(
    ("config", "labels", "targets", "bounds", "expected"),
    [
        (CrossEntropyConfig(), THREE, np.repeat([0, 1, 2], [50, 30, 20]), None, ENTROPY),
        (DualObjectiveConfig(reduction="sum"), THREE, np.repeat([0, 1, 2], [50, 30, 20]), None, EACH),
        (BinaryCrossEntropyConfig(), TWO, np.repeat([0, 1], [70, 30]), None, COIN),
        (BinaryCrossEntropyConfig(), TWO, np.repeat([0, 1], [70, 30]), (0.0, 1.0), COIN),
        (MeanSquaredErrorConfig(), Labels("regression", (), 0.0, 1.0), NUMBERS, None, float(NUMBERS.var())),
        (MeanSquaredErrorConfig(), Labels("regression", (), 0.0, 1.0), NUMBERS, (-1.0, 1.0), float(NUMBERS.var())),
    ],
)
def test_it_is_entropy_or_variance(
    config: LossConfig, labels: Labels, targets: np.ndarray, bounds: Bounds, expected: float
) -> None:
    loss = config.build(labels, "task", bounds)
    assert constant_loss(loss, targets, bounds, 16) == pytest.approx(expected, rel=1e-4)


def test_rows_of_several_labels() -> None:
    loss = BinaryCrossEntropyConfig().build(Labels("multilabel", ("x", "y")), "task", None)
    targets = np.zeros((10, 2), dtype=np.float32)
    targets[:3, 0] = targets[:5, 1] = 1
    assert constant_loss(loss, targets, None, 16) == pytest.approx((COIN + np.log(2)) / 2, rel=1e-4)


def test_scales_that_differ_by_ten_are_noted() -> None:
    assert scale_notes({"a": 1.6, "b": 0.2}, []) == []
    (note,) = scale_notes({"a": 1.6, "b": 0.08, "c": 100.0}, ["c"])
    assert note.startswith("the tasks' losses differ in scale by more than 10 (of a constant prediction: a 1.6, b 0.08")
    assert scale_notes({"a": 1.6, "b": 0.08}, ["b"]) == []


def test_a_loss_that_sees_the_batch_gets_one_batch() -> None:
    """Equal vectors give every candidate of the batch the same share."""
    pairs = np.arange(80).reshape(40, 2)
    loss = InBatchNegativesConfig().build(Labels("matches"), "t", (-1.0, 1.0))
    assert constant_loss(loss, pairs, (-1.0, 1.0), 8) == pytest.approx(np.log(8))
