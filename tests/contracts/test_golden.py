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
from weft.surgery import SurgeryConfig
from weft.types import Encoded
from weft.weighting import WeightingConfig

THREE = Labels("classification", ("a", "b", "c"))
YES_NO = Labels("classification", ("no", "yes"))
NUMBER = Labels("regression", low=0, high=1, scaled=True)

# loss: labels, output, target, value, reading
LOSSES = {
    "cross-entropy": (THREE, [[0.0, 0.0, math.log(2)]], [2], [math.log(2)], [[0.25, 0.25, 0.5]]),
    "binary-cross-entropy": (YES_NO, [[math.log(3)]], [1], [math.log(4 / 3)], [[0.25, 0.75]]),
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
WEIGHTINGS: dict[str, tuple[dict[str, object], list[float], list[float]]] = {
    "sum": ({}, [0.5, 2.0], [0.5, 2.0]),
    "mean": ({}, [0.5, 2.0], [0.25, 1.0]),
    "fixed": ({"weights": {"a": 0.1, "b": 3.0}}, [0.5, 2.0], [0.05, 6.0]),
    "uncertainty": ({"start": math.log(2)}, [0.5, 2.0], [0.25 + math.log(2), 1.0 + math.log(2)]),
    "dwa": ({}, [0.5, 2.0], [0.5, 2.0]),
    # drawn from seed 3: the weights sum to 2
    "random": ({}, [1.0, 1.0], [1.3042725, 0.6957275]),
}

# surgery: gradients of the tasks, the combination
TWO = [[-4.0, 1.0, 1.0], [6.0, 1.0, 1.0]]
SURGERIES = {
    "pcgrad": (TWO, [0.5848, 3.8012, 3.8012]),
    "upgrad": (TWO, [0.2929, 1.9004, 1.9004]),  # half of it: a mean, not a sum
    "mgda": (TWO, [0.0, 1.0, 1.0]),  # the point of the segment between them that is nearest to zero
    "cagrad": (TWO, [0.1835, 1.2041, 1.2041]),
    "imtl-g": (TWO, [0.0767, 1.0, 1.0]),
    "aligned-mtl": (TWO, [0.2133, 0.9673, 0.9673]),
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
    options, losses, value = WEIGHTINGS[name]
    weighting = variants(WeightingConfig)[name](**options).build(("a", "b"))  # type: ignore[attr-defined]
    weighting.prepare(3)
    torch.testing.assert_close(weighting(torch.tensor(losses), ("a", "b")), torch.tensor(value))


@pytest.mark.parametrize("name", sorted(set(variants(SurgeryConfig)) - {"none"}))
def test_surgeries(name: str) -> None:
    matrix, value = SURGERIES[name]
    gradients = torch.tensor(matrix)
    weights = variants(SurgeryConfig)[name]().build()(gradients @ gradients.T)  # type: ignore[attr-defined]
    torch.testing.assert_close(weights @ gradients, torch.tensor(value), rtol=0, atol=1e-4)
