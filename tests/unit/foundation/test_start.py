"""Modules whose weights come from a file draw nothing."""

import torch
from torch import nn

from weft.foundation.start import NoRandomStart, shapes_alone


def test_nothing_is_drawn_and_nothing_is_left_undefined() -> None:
    before = torch.get_rng_state()
    with NoRandomStart():
        layers = [nn.Linear(3, 4), nn.Embedding(5, 3), nn.LSTM(3, 2)]
        norm = nn.LayerNorm(3)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(not parameter.any() for layer in layers for parameter in layer.parameters())
    assert all(parameter.requires_grad for layer in layers for parameter in layer.parameters())
    assert norm.weight.tolist() == [1.0, 1.0, 1.0], "what is not random stays"
    assert nn.Linear(3, 4).weight.any(), "afterwards torch draws again"


def test_shapes_without_memory() -> None:
    with shapes_alone():
        huge = nn.Linear(10_000_000, 10_000_000)
    assert huge.weight.is_meta
    assert huge.weight.shape == (10_000_000, 10_000_000)
