"""What each process takes of a window, and what one process alone does."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from weft.training.distributed import SOLO, join, share_of
from weft.types import Part, Window


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(1, 5))
def test_shares_are_all_rows_once_and_nearly_equal(sizes: list[int], count: int) -> None:
    parts = [Part(f"task{i % 2}", i, np.arange(10 * i, 10 * i + size)) for i, size in enumerate(sizes)]
    window = Window(3, tuple(parts))
    shares = [share_of(window, rank, count) for rank in range(count)]
    assert all(share.step == 3 for share in shares)
    for part in parts:
        own = [[p for p in share.parts if (p.task, p.micro) == (part.task, part.micro)] for share in shares]
        rows = [int(row) for found in own for p in found for row in p.rows]
        assert sorted(rows) == part.rows.tolist()
        lengths = [sum(len(p.rows) for p in found) for found in own]
        assert max(lengths) - min(lengths) <= 1
        assert all(len(p.rows) for found in own for p in found), "an empty part would be a batch of nothing"


def test_one_process_shares_nothing() -> None:
    window = Window(0, (Part("a", 0, np.arange(3)),))
    layer = nn.Linear(2, 2)
    layer.weight.grad = torch.ones(2, 2)
    SOLO.sum_gradients(list(layer.parameters()))
    assert SOLO.share(window) is window
    assert torch.equal(layer.weight.grad, torch.ones(2, 2))
    assert layer.bias.grad is None
    assert SOLO.own == ()
    with join("cpu") as processes:
        assert processes is SOLO
