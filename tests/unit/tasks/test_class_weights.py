"""Class weights from the train rows."""

import numpy as np
import pytest

from weft.foundation.errors import UserError
from weft.kinds.labels import Labels
from weft.tasks.class_weights import class_weights
from weft.tasks.config import TaskConfig

LABELS = Labels("classification", ("a", "b", "c"))
TARGETS = np.array([0] * 600 + [1] * 30 + [2] * 3)


def weights(wanted: object) -> np.ndarray:
    config = TaskConfig.model_validate({"kind": "classification", "class_weights": wanted})
    found = class_weights(config, LABELS, TARGETS, "t")
    assert found is not None
    return found.numpy()


def test_effective_numbers_of_rows() -> None:
    """E(1) = 1 and E(n) = 1 + beta E(n - 1). Weights are 1 / E, with mean 1 over the rows."""
    for wanted, beta in (("effective", 0.999), ({"effective": 0.9}, 0.9)):
        size, sizes = 0.0, {}
        for n in range(1, 601):
            size = 1 + beta * size
            sizes[n] = size
        inverse = np.array([1 / sizes[n] for n in (600, 30, 3)])
        expected = inverse * 633 / (inverse @ [600, 30, 3])
        assert weights(wanted) == pytest.approx(expected)


def test_limits_of_the_effective_number() -> None:
    assert weights({"effective": 0}) == pytest.approx([1, 1, 1])
    assert weights({"effective": 1 - 1e-9}) == pytest.approx(weights("balanced"), rel=1e-5)
    assert weights("balanced") * [600, 30, 3] == pytest.approx([211] * 3)
    assert weights({"a": 1, "b": 2, "c": 4}) == pytest.approx(np.array([1, 2, 4]) * 633 / (600 + 60 + 12))


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"effective": 1.0}, "tasks.t.class_weights.effective: found 1, expected a number from 0 to less than 1"),
        ({"effective": -0.5}, "class_weights.effective: found -0.5"),
        ({"a": 1.0, "b": 1.0}, "tasks.t.class_weights: expected one weight for each of a, b, c"),
    ],
)
def test_rejections(wanted: object, message: str) -> None:
    with pytest.raises(UserError) as error:
        weights(wanted)
    assert message in str(error.value)
