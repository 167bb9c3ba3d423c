import math

import numpy as np
import pytest
from scipy.stats.contingency import association

from weft.audit.agreement import cramers_v


def test_the_corrected_v_follows_from_scipys_plain_one() -> None:
    draw = np.random.default_rng(3)
    one = draw.integers(0, 4, 300)
    two = np.where(draw.random(300) < 0.5, one, draw.integers(0, 4, 300)) % 3
    table = np.zeros((4, 3), dtype=int)
    np.add.at(table, (one, two), 1)
    plain = association(table, method="cramer")
    phi2 = plain**2 * 2 - 3 * 2 / 299  # chi2 / n = V**2 min(r - 1, c - 1)
    expected = math.sqrt(phi2 / min(4 - 9 / 299 - 1, 3 - 4 / 299 - 1))
    assert cramers_v(one, two) == pytest.approx(expected)


def test_bounds() -> None:
    labels = np.arange(120) % 3
    assert cramers_v(labels, labels) == pytest.approx(1)
    assert cramers_v(labels, 2 - labels) == pytest.approx(1)
    draw = np.random.default_rng(1)
    assert cramers_v(draw.integers(0, 3, 2000), draw.integers(0, 3, 2000)) < 0.05
    assert math.isnan(cramers_v(labels, np.zeros(120, dtype=int)))
