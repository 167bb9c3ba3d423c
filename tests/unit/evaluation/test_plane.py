import numpy as np
import pytest

from weft.evaluation.plane import principal_axes


def test_the_plane_holds_what_varies_most() -> None:
    draw = np.random.default_rng(0)
    vectors = draw.normal(size=(500, 5)) * [1, 9, 1, 4, 1] + 7
    axes = principal_axes(vectors)
    assert np.abs(axes.directions).argmax(axis=0).tolist() == [1, 3]
    assert axes.explained == pytest.approx((0.81, 0.16), abs=0.02)
    points = axes.points(vectors)
    assert points.mean(axis=0) == pytest.approx([0, 0], abs=1e-9)
    assert points.std(axis=0) == pytest.approx([9, 4], rel=0.1)


def test_new_vectors_lie_in_the_plane_of_the_old() -> None:
    vectors = np.random.default_rng(1).normal(size=(40, 3))
    axes = principal_axes(vectors)
    np.testing.assert_array_equal(axes.points(vectors[3:9]), axes.points(vectors)[3:9])


def test_vectors_without_any_difference() -> None:
    axes = principal_axes(np.ones((4, 3)))
    assert axes.explained == (0, 0)
    assert not axes.points(np.ones((4, 3))).any()
