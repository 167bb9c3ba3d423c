"""What each process takes of a window, and what one process alone does."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from weft.foundation.errors import UserError
from weft.foundation.values import Part, Window
from weft.training.distributed import SOLO, join, share_of


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


def test_half_of_what_torchrun_sets_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(UserError, match="MASTER_ADDR, MASTER_PORT is not set; start with torchrun"), join("cpu"):
        pass


def test_more_processes_than_gpus_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "x", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(UserError, match="2 processes on a machine with 1 GPUs"), join("auto"):
        pass
