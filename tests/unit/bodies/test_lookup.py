"""The kept gradient of the token table is the one that torch would make anew."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from weft.bodies.lookup import TokenTable

PASS = st.lists(st.integers(0, 9), min_size=1, max_size=6)
STEP = st.tuples(st.lists(PASS, min_size=1, max_size=3), st.sampled_from(["plain", "clipped", "replaced"]))


def _pass(table: nn.Embedding, ids: list[int]) -> None:
    vectors = table(torch.tensor(ids))
    (vectors * torch.arange(1.0, 1 + vectors.numel()).view_as(vectors)).sum().backward()


def _gradient(table: nn.Embedding) -> torch.Tensor:
    assert table.weight.grad is not None
    return table.weight.grad


@given(st.lists(STEP, min_size=1, max_size=5))
def test_gradients_equal_those_of_a_plain_table(steps: list[tuple[list[list[int]], str]]) -> None:
    ours, plain = TokenTable(10, 3), nn.Embedding(10, 3)
    ours.keeps_gradient = True
    for passes, meanwhile in steps:
        for table in (ours, plain):
            table.weight.grad = None
            for number, ids in enumerate(passes):
                _pass(table, ids)
                if number == 0 and meanwhile == "clipped":
                    _gradient(table).mul_(0.5)
                if number == 0 and meanwhile == "replaced":
                    table.weight.grad = _gradient(table) + 1
        assert torch.equal(_gradient(ours), _gradient(plain))


def test_a_frozen_table_gets_no_gradient() -> None:
    table = TokenTable(10, 3)
    table.keeps_gradient = True
    table.weight.requires_grad_(False)
    assert not table(torch.tensor([1, 2])).requires_grad
