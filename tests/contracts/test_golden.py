"""Small inputs and hand-checkable outputs of every pooling, head, loss and weighting, in one place."""

import math

import pytest
import torch

from tests.contracts.registry import variants
from weft.data.labels import Labels
from weft.losses import LossConfig
from weft.nn.body import Body, BodyShape
from weft.nn.heads import HeadConfig
from weft.nn.heads.base import HeadShape
from weft.nn.pooling import PoolingConfig
from weft.types import Encoded
from weft.weighting import WeightingConfig

THREE = Labels("classification", ("a", "b", "c"))
TWO = Labels("classification", ("no", "yes"))
NUMBER = Labels("regression", low=0, high=1, scaled=True)

# loss: labels, output, target, value, reading
LOSSES = {
    "cross-entropy": (THREE, [[0.0, 0.0, math.log(2)]], [2], [math.log(2)], [[0.25, 0.25, 0.5]]),
    "binary-cross-entropy": (TWO, [[math.log(3)]], [1], [math.log(4 / 3)], [[0.25, 0.75]]),
    "mse": (NUMBER, [[0.75]], [0.25], [0.25], [0.75]),
}

# pooling: two sequences, [1 2], [3 4], [5 6] and [7 8] -> vectors
STATES = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]
POOLINGS = {
    "cls": [[1, 2], [7, 8]],
    "mean": [[3, 4], [7, 8]],
    # the body's pooler below swaps the two numbers and takes a tenth
    "pooler": [[math.tanh(0.2), math.tanh(0.1)], [math.tanh(0.8), math.tanh(0.7)]],
}

# head: outputs, all weights set to this, first, second, value
HEADS = {
    "linear": (1, 2.0, [[1.0, 2.0]], [[3.0, 4.0]], [[22.0]]),  # 2 (1 + 2 + 3 + 4) + bias 2
    "cosine": (1, None, [[3.0, 4.0]], [[4.0, 3.0]], [[24 / 25]]),
}

# weighting: losses -> weighted losses at the start
WEIGHTINGS = {
    "sum": ([0.5, 2.0], [0.5, 2.0]),
}


@pytest.mark.parametrize("name", variants(LossConfig))
def test_losses(name: str) -> None:
    labels, output, target, value, reading = LOSSES[name]
    loss = variants(LossConfig)[name]().build(labels, "t")
    got = loss(torch.tensor(output), torch.tensor(target))
    torch.testing.assert_close(got, torch.tensor(value))
    torch.testing.assert_close(loss.read(torch.tensor(output)), torch.tensor(reading))


@pytest.mark.parametrize("name", variants(PoolingConfig))
def test_poolings(name: str) -> None:
    body = Body(BodyShape(vocabulary=5, width=2, layers=1, heads=1, inner=2, positions=4))
    with torch.no_grad():
        body.pooler.weight.copy_(torch.tensor([[0.0, 0.1], [0.1, 0.0]]))
    pooling = variants(PoolingConfig)[name]().build(body)
    encoded = Encoded(torch.zeros(4, dtype=torch.long), torch.zeros(4, dtype=torch.long), (3, 1))
    got = pooling(torch.tensor(STATES), encoded)
    torch.testing.assert_close(got, torch.tensor(POOLINGS[name], dtype=torch.float32))


@pytest.mark.parametrize("name", variants(HeadConfig))
def test_heads(name: str) -> None:
    outputs, weight, first, second, value = HEADS[name]
    head = variants(HeadConfig)[name]().build(HeadShape(2, pair=True, outputs=outputs, task="t"))
    for parameter in head.parameters():
        torch.nn.init.constant_(parameter, weight)
    got = head(torch.tensor(first), torch.tensor(second))
    torch.testing.assert_close(got, torch.tensor(value))


@pytest.mark.parametrize("name", variants(WeightingConfig))
def test_weightings(name: str) -> None:
    losses, value = WEIGHTINGS[name]
    weighting = variants(WeightingConfig)[name]().build(("a", "b"))
    torch.testing.assert_close(weighting(torch.tensor(losses), ("a", "b")), torch.tensor(value))
