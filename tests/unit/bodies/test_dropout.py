import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from weft.bodies.dropout import Dropout, drop, drop_alike
from weft.foundation.randomness import seeded


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5])
def test_the_share_of_zeros_and_the_mean(p: float) -> None:
    with seeded(3, 0, 0, "x"):
        found = drop(torch.ones(1000, 1000), p)
    assert float((found == 0).float().mean()) == pytest.approx(p, abs=0.003)
    assert float(found.mean()) == pytest.approx(1, abs=0.003)
    assert sorted(found.unique().tolist()) == pytest.approx([0, 1 / (1 - p)])


def test_the_mask_follows_from_torch_s_generator() -> None:
    masks = []
    for seed in (1, 1, 2):
        with seeded(seed, 0, 0, "x"):
            masks.append(drop(torch.ones(300), 0.5))
    assert torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[0], masks[2])


def test_two_calls_draw_different_masks() -> None:
    with seeded(1, 0, 0, "x"):
        assert not torch.equal(drop(torch.ones(300), 0.5), drop(torch.ones(300), 0.5))


@given(st.integers(1, 9), st.integers(0, 9), st.sampled_from([torch.float32, torch.float64, torch.bfloat16]))
def test_gradients_go_where_values_went(rows: int, columns: int, dtype: torch.dtype) -> None:
    values = torch.ones(rows, columns, dtype=dtype, requires_grad=True)
    found = drop(values, 0.25)
    assert found.dtype == dtype
    found.sum().backward()
    assert torch.equal(values.grad, found)  # of ones, the output is the mask times its scale


def test_nothing_happens_outside_of_training() -> None:
    module = Dropout(0.9).eval()
    values = torch.randn(5)
    assert module(values) is values
    assert drop(values, 0.0) is values


def test_both_sides_of_a_pair_lose_the_same_entries() -> None:
    first, second = torch.rand(40, 50) + 1, torch.rand(40, 50) + 1
    with seeded(3, 0, 0, "x"):
        one, two = drop_alike([first, second], 0.3)
    assert torch.equal(one == 0, two == 0)
    assert float((one == 0).float().mean()) == pytest.approx(0.3, abs=0.05)
    torch.testing.assert_close(two[two != 0], second[two != 0] / 0.7)
    assert drop_alike([first, second], 0.0)[1] is second
