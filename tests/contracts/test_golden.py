"""Small inputs and hand-checkable outputs of every kind of label, pooling, head, loss and weighting, in one place."""

import math
from typing import NamedTuple

import numpy as np
import pytest
import torch

from tests.contracts.registry import variants
from weft.bodies.body import Body
from weft.bodies.shape import BodyShape
from weft.data.long_texts import LongTextsConfig
from weft.foundation.values import Encoded
from weft.kinds import KINDS
from weft.kinds.labels import Labels
from weft.losses import LossConfig
from weft.nn.heads import HeadConfig
from weft.nn.heads.base import HeadShape
from weft.nn.pooling import PoolingConfig
from weft.penalties import PenaltyConfig
from weft.penalties.base import OutputPenalty
from weft.surgery import SurgeryConfig
from weft.weighting import WeightingConfig

THREE = Labels("classification", ("a", "b", "c"))
YES_NO = Labels("classification", ("no", "yes"))
NUMBER = Labels("regression", low=0, high=1, scaled=True)
PAIRS = Labels("matches")

THIRD = [[1 / 3, 1 / 3, 1 / 3]]
# loss: labels, what the head gives, output, target, value, reading
LOSSES = {
    "cross-entropy": (THREE, None, [[0.0, 0.0, math.log(2)]], [2], [math.log(2)], [[0.25, 0.25, 0.5]]),
    "binary-cross-entropy": (YES_NO, None, [[math.log(3)]], [1], [math.log(4 / 3)], [[0.25, 0.75]]),
    "mse": (NUMBER, None, [[0.75]], [0.25], [0.25], [0.75]),
    "cosine-embedding": (
        YES_NO,
        (-1.0, 1.0),
        [[0.6], [0.6], [-0.5]],
        [1, 0, 0],
        [0.4, 0.6, 0.0],
        [[0.4, 0.6], [0.4, 0.6], [1, 0]],
    ),
    "dual-objective": (THREE, None, [[0.0, 0.0, 0.0]], [1], [3 * math.log(2)], THIRD),
    # the candidate of the other row has the same cosine, then a cosine lower by log(3) / 20
    "in-batch-negatives": (
        PAIRS,
        (-1.0, 1.0),
        [[[1.0, 0.0], [0.6, 0.8]], [[0.0, 1.0], [0.6, 0.8 - math.log(3) / 20]]],
        [[0, 1], [2, 3]],
        [math.log(2), math.log(4)],
        [0.6, 0.8 - math.log(3) / 20],
    ),
    # one pair of rows in the wrong order by log(3) / 20
    "cosent": (
        NUMBER,
        (-1.0, 1.0),
        [[0.5], [0.5 + math.log(3) / 20]],
        [1.0, 0.0],
        [math.log(4)] * 2,
        [0.5, 0.5 + math.log(3) / 20],
    ),
    # similarities |ac + bd + bc - ad|: 1 with the label 1, and 0.8 + 0.6 with the label 0
    "angle": (
        NUMBER,
        (-1.0, 1.0),
        [[[1.0, 0.0], [1.0, 0.0]], [[0.6, 0.8], [1.0, 0.0]]],
        [1.0, 0.0],
        [math.log(1 + math.exp(20 * 0.4))] * 2,
        [1.0, 0.6],
    ),
    # -log(2/3) times the distances 1 and 2 to the power 1.5
    "ordinal-log": (THREE, None, [[0.0, 0.0, 0.0]], [0], [math.log(1.5) * (1 + 2**1.5)], THIRD),
    # texts of one word: without transitions it is cross-entropy
    "crf": (Labels("tags", ("O", "x", "y")), None, [[0.0, 0.0, math.log(2)]], [2], [math.log(2)], [[0.25, 0.25, 0.5]]),
    "focal": (THREE, None, [[0.0, 0.0, math.log(2)]], [2], [0.25 * math.log(2)], [[0.25, 0.25, 0.5]]),
    # the train rows are these rows: the classes have frequencies of 1/2, 1/4 and 1/4
    "logit-adjusted": (THREE, None, [[0.0] * 3] * 4, [0, 0, 1, 2], np.log([2.0, 2.0, 4.0, 4.0]).tolist(), THIRD * 4),
}


class KindRow(NamedTuple):
    labels: Labels
    cells: list[str]
    targets: list[object]
    """of these cells"""
    value: object
    """a model's answer for one row"""
    answer: tuple[object, float, object]
    """what it says: label, score, probabilities"""


KIND_ROWS = {
    "classification": KindRow(
        Labels("classification", ("no", "yes", "maybe")),
        ["no", " maybe", "yes", "no"],
        [0, 2, 1, 0],
        [0.25, 0.5, 0.25],
        ("yes", 0.5, {"no": 0.25, "yes": 0.5, "maybe": 0.25}),
    ),
    "ordinal": KindRow(
        Labels("ordinal", ("1", "2", "3")),
        ["3", "1.0", "2", "1"],
        [2, 0, 1, 0],
        [0.75, 0.25, 0.0],
        ("1", 0.75, {"1": 0.75, "2": 0.25, "3": 0.0}),
    ),
    "multilabel": KindRow(
        Labels("multilabel", ("a", "b", "c")),
        ["b; a", "", "c", '["a"]'],
        [[1, 1, 0], [0, 0, 0], [0, 0, 1], [1, 0, 0]],
        [0.75, 0.25, 1.0],
        (["a", "c"], 1.0, {"a": 0.75, "b": 0.25, "c": 1.0}),
    ),
    "regression": KindRow(
        Labels("regression", low=1, high=5, scaled=True),
        ["1", "5.0", "2.5", "4"],
        [0, 1, 0.375, 0.75],
        0.25,
        (None, 2, None),
    ),
    "matches": KindRow(PAIRS, ["0 1", "2 1", "0 3", "4 5"], [[0, 1], [2, 1], [0, 3], [4, 5]], 0.25, (None, 0.25, None)),
    "tags": KindRow(
        Labels("tags", ("O", "B-city", "I-city", "B-day")),
        ['["O", "B-city"]', "[]", '["B-day"]', '["B-city", "I-city"]'],
        [[0, 1], [], [3], [1, 2]],
        [[0, 3, 1, 0.5], [4, 8, 2, 1.0], [9, 11, 0, 0.75]],  # characters 0 to 3 and 4 to 8 are a city
        ([{"start": 0, "end": 8, "label": "city", "score": 0.75}], 0.75, None),
    ),
}

# pooling: two sequences, [1 2], [3 4], [5 6] and [7 8] -> vectors
STATES = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]
GATE, NEW = 1 / (1 + math.exp(-1)), math.tanh(1)
CELLS = [GATE * NEW, GATE * NEW * (1 + GATE), GATE * NEW * (1 + GATE + GATE**2)]
# what is read of the tokens 0 to 9 where four have room
LONG_TEXTS: dict[str, tuple[dict[str, object], list[list[int]]]] = {
    "truncate": ({}, [[0, 1, 2, 3]]),
    "head-tail": ({"head": 0.25}, [[0, 7, 8, 9]]),
    "windows": ({"overlap": 0.25}, [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9]]),
}
POOLINGS: dict[str, tuple[dict[str, object], list[list[float]]]] = {
    "cls": ({}, [[1, 2], [7, 8]]),
    "mean": ({}, [[3, 4], [7, 8]]),
    "max": ({}, [[5, 6], [7, 8]]),
    "words": ({}, STATES),
    "attention": ({}, [[3, 4], [7, 8]]),  # with its query at 0 the plain mean
    # the body's pooler below swaps the two numbers and takes a tenth
    "pooler": ({}, [[math.tanh(0.2), math.tanh(0.1)], [math.tanh(0.8), math.tanh(0.7)]]),
    # one unit, no weights, biases of 1: every gate is open by sigmoid(1), whatever it reads
    "lstm": ({"size": 1}, [[GATE * math.tanh(CELLS[2])], [GATE * math.tanh(CELLS[0])]]),
}

# head: options, all weights and biases set to this, first, second, value
PAIR = ([[1.0, 2.0]], [[3.0, 4.0]])
ANGLE = ([[3.0, 4.0]], [[4.0, 3.0]])  # cosine 24/25
COSINE = 11 / (math.sqrt(5) * 5)
HEADS: dict[
    str, tuple[dict[str, object], float, tuple[list[list[float]], list[list[float]]], float | list[list[float]]]
] = {
    "linear": ({}, 2.0, PAIR, 22.0),  # 2 (1 + 2 + 3 + 4) + 2
    "difference": ({}, 2.0, PAIR, 30.0),  # 2 (1 + 2 + 3 + 4 + 2 + 2) + 2
    "hidden": ({"units": 3}, 0.5, PAIR, 8.75),  # each unit 0.5 * 10 + 0.5 = 5.5
    "mlp": ({"sizes": (2, 1)}, 0.5, PAIR, 3.5),  # 5.5 twice, then 6, then 3.5
    "cosine": ({}, 0.0, ANGLE, 24 / 25),
    "relu-cosine": ({}, 0.0, ANGLE, 24 / 5),
    "scaled-cosine": ({}, 2.0, ANGLE, 0.92),  # 2 (0.96 - 1) + 1
    "vectors": ({}, 0.0, ANGLE, [[0.6, 0.8], [0.8, 0.6]]),
    "shared-pair": ({"size": 2}, 0.1, PAIR, 0.1 * 2 * (0.1 * (14 + COSINE) + 0.1) + 0.1),
}

# weighting: losses -> weighted losses at the start
WEIGHTINGS: dict[str, tuple[dict[str, object], list[float], list[float]]] = {
    "sum": ({}, [0.5, 2.0], [0.5, 2.0]),
    "mean": ({}, [0.5, 2.0], [0.25, 1.0]),
    "fixed": ({"weights": {"a": 0.1, "b": 3.0}}, [0.5, 2.0], [0.05, 6.0]),
    "normalized": ({}, [0.5, 2.0], [1.0, 0.5]),  # constant answers give 0.5 and 4
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


@pytest.mark.parametrize("name", KINDS)
def test_kinds(name: str) -> None:
    row = KIND_ROWS[name]
    kind = row.labels.kind
    assert kind is KINDS[name]
    assert [kind.target(cell, row.labels) for cell in row.cells] == row.targets
    assert kind.answer(row.labels, np.array(row.value)) == row.answer


@pytest.mark.parametrize("name", variants(LossConfig))
def test_losses(name: str) -> None:
    labels, bounds, output, target, value, reading = LOSSES[name]
    loss = variants(LossConfig)[name]().build(labels, "t", bounds)  # type: ignore[attr-defined]
    loss.observe(np.array(target))
    got = loss(torch.tensor(output), torch.tensor(target))
    torch.testing.assert_close(got, torch.tensor(value))
    torch.testing.assert_close(loss.read(torch.tensor(output)), torch.tensor(reading, dtype=torch.float32))


@pytest.mark.parametrize("name", variants(LongTextsConfig))
def test_long_texts(name: str) -> None:
    options, value = LONG_TEXTS[name]
    pieces = variants(LongTextsConfig)[name](**options).pieces(np.arange(10), 4)  # type: ignore[attr-defined]
    assert [piece.tolist() for piece in pieces] == value


@pytest.mark.parametrize("name", variants(PoolingConfig))
def test_poolings(name: str) -> None:
    options, value = POOLINGS[name]
    body = Body(BodyShape(vocabulary=5, width=2, layers=1, heads=1, inner=2, positions=4))
    with torch.no_grad():
        body.pooler.weight.copy_(torch.tensor([[0.0, 0.1], [0.1, 0.0]]))
    pooling = variants(PoolingConfig)[name](**options).build(body)  # type: ignore[attr-defined]
    if name == "lstm":
        for key, parameter in pooling.named_parameters():
            torch.nn.init.constant_(parameter, 1.0 if "bias_ih" in key else 0.0)
    encoded = Encoded(torch.zeros(4, dtype=torch.long), torch.zeros(4, dtype=torch.long), (3, 1))
    got = pooling(torch.tensor(STATES), encoded)
    torch.testing.assert_close(got, torch.tensor(value, dtype=torch.float32))


@pytest.mark.parametrize("name", variants(HeadConfig))
def test_heads(name: str) -> None:
    options, weight, (first, second), value = HEADS[name]
    head = variants(HeadConfig)[name](**options).build(HeadShape(2, pair=True, outputs=1, task="t"))  # type: ignore[attr-defined]
    for parameter in head.parameters():
        torch.nn.init.constant_(parameter, weight)
    got = head(torch.tensor(first), torch.tensor(second))
    torch.testing.assert_close(got, torch.tensor([value] if isinstance(value, list) else [[value]]))


PENALTIES = {"l1": 1e-4 * 10, "l2": 1e-3 * 30, "bregman": 2.0, "bregman-weights": 0.01 * 0.5 * 30}


@pytest.mark.parametrize("name", variants(PenaltyConfig))
def test_penalties(name: str) -> None:
    """On the weights 1, -2, 3, -4 and, for norms, a bias; the moving average stands at zero.

    Outputs are compared by their distance |1 - 3|.
    """
    layer = torch.nn.Linear(2, 2, bias=name in ("l1", "l2"))
    torch.nn.init.zeros_(layer.weight)
    penalty = variants(PenaltyConfig)[name]().build()  # type: ignore[attr-defined]
    penalty.prepare(layer)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, -2.0], [3.0, -4.0]]))
    if isinstance(penalty, OutputPenalty):
        found = penalty(torch.tensor([[1.0]]), torch.tensor([[3.0]]), lambda a, b: (a - b).abs().sum(dim=1))
    else:
        found = penalty(list(layer.named_parameters()))
    assert float(found.detach()) == pytest.approx(PENALTIES[name])
    penalty.after_step(layer)
    if name == "bregman":
        torch.testing.assert_close(penalty.earlier(layer).weight, 0.01 * layer.weight.detach())
    if name == "bregman-weights":
        torch.testing.assert_close(penalty.averages["weight"], 0.01 * layer.weight.detach())


@pytest.mark.parametrize("name", variants(WeightingConfig))
def test_weightings(name: str) -> None:
    options, losses, value = WEIGHTINGS[name]
    weighting = variants(WeightingConfig)[name](**options).build(("a", "b"))  # type: ignore[attr-defined]
    weighting.calibrate({"a": 0.5, "b": 4.0})
    weighting.prepare(3)
    torch.testing.assert_close(weighting(torch.tensor(losses), ("a", "b")), torch.tensor(value))


@pytest.mark.parametrize("name", sorted(set(variants(SurgeryConfig)) - {"none"}))
def test_surgeries(name: str) -> None:
    matrix, value = SURGERIES[name]
    gradients = torch.tensor(matrix)
    weights = variants(SurgeryConfig)[name]().build()(gradients @ gradients.T)  # type: ignore[attr-defined]
    torch.testing.assert_close(weights @ gradients, torch.tensor(value), rtol=0, atol=1e-4)
