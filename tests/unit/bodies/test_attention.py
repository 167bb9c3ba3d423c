"""Attention of packed sequences equals torch's own, sequence by sequence, forwards and backwards."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from weft.bodies.attention import Groups, attention
from weft.foundation.values import Encoded

HEADS, WIDTH = 3, 12


def _encoded(lengths: list[int]) -> Encoded:
    zeros = torch.zeros(sum(lengths), dtype=torch.int64)
    return Encoded(zeros, zeros, tuple(lengths))


def _one_by_one(qkv: Tensor, lengths: list[int]) -> Tensor:
    contexts = []
    for piece in qkv.split(lengths):
        q, k, v = piece.view(len(piece), 3, HEADS, -1).permute(1, 2, 0, 3)
        contexts.append(F.scaled_dot_product_attention(q, k, v).transpose(0, 1).reshape(len(piece), -1))
    return torch.cat(contexts)


@settings(deadline=None)
@given(st.lists(st.integers(1, 7), min_size=1, max_size=9))
def test_equals_attention_one_by_one(lengths: list[int]) -> None:
    torch.manual_seed(sum(lengths))
    qkv = torch.randn(sum(lengths), 3 * WIDTH, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(sum(lengths), WIDTH, dtype=torch.float64)
    ours = attention(qkv, Groups(_encoded(lengths), HEADS), 0.0)
    theirs = _one_by_one(qkv, lengths)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
    (one,) = torch.autograd.grad((ours * weights).sum(), qkv)
    (other,) = torch.autograd.grad((theirs * weights).sum(), qkv)
    torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("is_biased", [False, True])
def test_the_fused_kernel_for_long_texts_gives_the_same(is_biased: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both paths on the same lengths, with a window as a bias and without."""
    lengths = [3, 9, 3, 12]
    groups = Groups(_encoded(lengths), HEADS)
    qkv = torch.randn(sum(lengths), 3 * WIDTH, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(sum(lengths), WIDTH, dtype=torch.float64)

    def window(number: int, queries: Tensor, _keys: Tensor) -> Tensor:
        places = torch.arange(queries.shape[2], dtype=torch.float64)
        return torch.zeros(1, dtype=torch.float64).masked_fill((places[:, None] - places).abs() > 2, float("-inf"))

    results = []
    for long in (512, 12):
        monkeypatch.setattr("weft.bodies.attention.LONG", long)
        context = attention(qkv, groups, 0.0, window if is_biased else None)
        results.append((context, *torch.autograd.grad((context * weights).sum(), qkv)))
    for explicit, fused in zip(*results, strict=True):
        torch.testing.assert_close(explicit, fused, rtol=0, atol=1e-12)


def test_gradients_with_dropout_are_those_of_the_same_mask() -> None:
    groups = Groups(_encoded([2, 4, 2, 3]), HEADS)
    qkv = torch.randn(11, 3 * WIDTH, dtype=torch.float64, requires_grad=True)

    def masked(values: Tensor) -> Tensor:
        torch.manual_seed(5)
        return attention(values, groups, 0.4)

    assert not torch.equal(masked(qkv), attention(qkv, groups, 0.0))
    assert torch.autograd.gradcheck(masked, (qkv,))


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_dropout_keeps_the_mean(p: float) -> None:
    """Values that are all 1 come back as the sum of each row's kept weights, 1 on average."""
    groups = Groups(_encoded([50] * 40), HEADS)
    qkv = torch.randn(2000, 3 * WIDTH)
    qkv[:, 2 * WIDTH :] = 1.0
    assert abs(float(attention(qkv, groups, p).mean()) - 1) < 0.01
