import pytest
import torch
from torch import nn

from weft.training.optimizer import OptimizerConfig, build_optimizer, rate


def test_rates_rise_then_fall_to_zero() -> None:
    config = OptimizerConfig(lr=1.0)
    rates = [rate(config, step, steps=10, warmup=4) for step in range(10)]
    assert rates[:4] == pytest.approx([0.2, 0.4, 0.6, 0.8])
    assert rates[4] == 1.0
    assert rates[9] == pytest.approx(1 / 6)
    assert rate(config, 10, steps=10, warmup=4) == 0.0


def test_a_constant_rate_stays() -> None:
    config = OptimizerConfig(lr=0.5, curve="constant")
    assert {rate(config, step, steps=9, warmup=0) for step in range(9)} == {0.5}


def test_norms_and_biases_do_not_decay() -> None:
    module = nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2), nn.Embedding(4, 2))
    optimizer = build_optimizer([module], OptimizerConfig(weight_decay=0.1))
    decayed, plain = optimizer.param_groups
    assert [p.ndim for p in decayed["params"]] == [2, 2]
    assert [p.ndim for p in plain["params"]] == [1, 1, 1]
    assert (decayed["weight_decay"], plain["weight_decay"]) == (0.1, 0.0)


def test_frozen_and_shared_parameters() -> None:
    shared = nn.Linear(2, 2)
    frozen = nn.Linear(2, 2).requires_grad_(False)
    optimizer = build_optimizer([nn.Sequential(shared, frozen), shared], OptimizerConfig())
    assert sum(len(group["params"]) for group in optimizer.param_groups) == 2
    assert isinstance(optimizer, torch.optim.AdamW)
