"""Losses for rare classes against torch's own functions, derivations and the rules that they must give."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from weft.foundation.errors import UserError
from weft.kinds.labels import Labels
from weft.losses.base import Loss
from weft.losses.binary_cross_entropy import BinaryCrossEntropyConfig
from weft.losses.focal import FocalConfig
from weft.losses.logit_adjusted import LogitAdjustedConfig

THREE = Labels("classification", ("a", "b", "c"))
TWO = Labels("classification", ("no", "yes"))
MANY = Labels("multilabel", ("a", "b", "c"))


def drawn(columns: int = 3, rows: int = 40) -> Tensor:
    return 3 * torch.randn(rows, columns, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def classes(rows: int = 40) -> Tensor:
    return torch.arange(rows) % 3


def labels_on(rows: int = 40) -> Tensor:
    return (torch.rand(rows, 3, generator=torch.Generator().manual_seed(2)) < 0.3).double()


def test_focal_of_classes_is_its_formula() -> None:
    output, target = drawn(), classes()
    p = output.softmax(dim=1)[torch.arange(40), target]
    for gamma in (0.0, 0.5, 2.0):
        loss = FocalConfig(gamma=gamma).build(THREE, "t", None)
        torch.testing.assert_close(loss(output, target), -((1 - p) ** gamma) * p.log(), rtol=1e-5, atol=1e-12)
    torch.testing.assert_close(
        FocalConfig(gamma=0).build(THREE, "t", None)(output, target), F.cross_entropy(output, target, reduction="none")
    )


def test_focal_of_two_classes_is_the_sigmoid_form_on_the_difference_of_logits() -> None:
    output, target = drawn(2), classes() % 2
    own = FocalConfig(gamma=1.5).build(TWO, "t", None)(output, target)
    torch.testing.assert_close(own, reference(output[:, 1] - output[:, 0], target.double(), 1.5, -1.0))


def reference(output: Tensor, target: Tensor, gamma: float, alpha: float) -> Tensor:
    """`sigmoid_focal_loss` of the authors' fvcore, as torchvision ships it."""
    p = torch.sigmoid(output)
    ce = F.binary_cross_entropy_with_logits(output, target, reduction="none")
    p_t = p * target + (1 - p) * (1 - target)
    loss = ce * ((1 - p_t) ** gamma)
    return (alpha * target + (1 - alpha) * (1 - target)) * loss if alpha >= 0 else loss


@pytest.mark.parametrize("alpha", [None, 0.25])
def test_focal_of_labels_is_the_authors(alpha: float | None) -> None:
    output, target = drawn(), labels_on()
    loss = FocalConfig(alpha=alpha).build(MANY, "t", None)
    expected = reference(output, target, 2.0, -1.0 if alpha is None else alpha).mean(dim=1)
    torch.testing.assert_close(loss(output, target), expected)


@pytest.mark.parametrize("gamma", [0.0, 0.3, 2.0])
def test_gradients_of_focal_are_finite_for_certain_rows(gamma: float) -> None:
    for labels, target in ((THREE, torch.tensor([0, 1])), (MANY, torch.tensor([[1.0, 0, 0], [0.0, 1, 0]]))):
        output = torch.tensor([[200.0, 0, 0], [200.0, 0, 0]], requires_grad=True)
        losses = FocalConfig(gamma=gamma).build(labels, "t", None)(output, target)
        losses.sum().backward()
        assert output.grad is not None
        assert torch.isfinite(losses).all()
        assert torch.isfinite(output.grad).all()


def test_logit_adjustment_minimizes_the_balanced_error() -> None:
    """On four texts with known frequencies, the trained argmax is argmax P(y | x) / P(y)."""
    joint = np.array([[30, 5, 1], [40, 9, 2], [20, 5, 4], [10, 1, 3]])  # rows of each text and class
    texts, target = (np.repeat(where, joint.ravel()) for where in np.divmod(np.arange(joint.size), 3))
    found = {}
    for name, loss in (
        ("plain", FocalConfig(gamma=0).build(THREE, "t", None)),
        ("adjusted", LogitAdjustedConfig().build(THREE, "t", None)),
    ):
        loss.observe(target)
        found[name] = fitted(loss, texts, target).softmax(dim=1).numpy()
    by_text = joint / joint.sum(axis=1, keepdims=True)
    balanced = by_text / joint.sum(axis=0)
    balanced /= balanced.sum(axis=1, keepdims=True)
    assert np.allclose(found["plain"], by_text, atol=1e-3)
    assert np.allclose(found["adjusted"], balanced, atol=1e-3)
    assert (balanced.argmax(axis=1) != by_text.argmax(axis=1)).any()


def fitted(loss: Loss, texts: np.ndarray, target: np.ndarray) -> Tensor:
    """[4, 3] the outputs for each text with the smallest mean loss"""
    free = torch.zeros(4, 3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([free], max_iter=500, line_search_fn="strong_wolfe", tolerance_change=1e-14)
    rows, answers = torch.from_numpy(texts), torch.from_numpy(target)

    def closure() -> float:
        optimizer.zero_grad()
        value = loss(free[rows], answers).mean()
        value.backward()
        return float(value.detach())

    optimizer.step(closure)
    return free.detach()


def test_logit_adjustment_adds_tau_log_frequencies() -> None:
    loss = LogitAdjustedConfig(tau=0.5).build(THREE, "t", None)
    loss.observe(np.array([0] * 8 + [1] * 2))  # class 2 has no row and counts as one
    output, target = drawn(), classes()
    shift = 0.5 * torch.tensor([8.0, 2.0, 1.0], dtype=torch.float64).log()
    torch.testing.assert_close(loss(output, target), F.cross_entropy(output + shift, target, reduction="none"))
    torch.testing.assert_close(loss.read(output), output.softmax(dim=1))
    assert not loss.state_dict()  # nothing of it is saved with the model


def test_pos_weight_is_torchs() -> None:
    output, target = drawn(), labels_on()
    for wanted, weight in (
        (3.0, [3.0, 3.0, 3.0]),
        ({"b": 5.0}, [1.0, 5.0, 1.0]),
        ("balanced", [(40 - n) / n for n in target.sum(dim=0).tolist()]),
    ):
        loss = BinaryCrossEntropyConfig(pos_weight=wanted).build(MANY, "t", None)
        loss.observe(target.numpy())
        torch_own = torch.nn.BCEWithLogitsLoss(pos_weight=torch.tensor(weight).double(), reduction="none")
        torch.testing.assert_close(loss(output, target), torch_own(output, target).mean(dim=1), rtol=1e-6, atol=0)
        focal = FocalConfig(pos_weight=wanted, gamma=0).build(MANY, "t", None)
        focal.observe(target.numpy())
        torch.testing.assert_close(focal(output, target), loss(output, target))
        assert not loss.state_dict()


def test_pos_weight_of_two_classes_and_of_probabilities() -> None:
    target = torch.tensor([0, 1, 1])
    logits = torch.tensor([[-1.0], [0.5], [2.0]], dtype=torch.float64)
    config = BinaryCrossEntropyConfig(pos_weight={"yes": 4.0})
    expected = -torch.where(target == 1, 4 * logits[:, 0].sigmoid().log(), (1 - logits[:, 0].sigmoid()).log())
    torch.testing.assert_close(config.build(TWO, "t", None)(logits, target), expected)
    torch.testing.assert_close(config.build(TWO, "t", (0.0, 1.0))(logits.sigmoid(), target), expected)


def test_balanced_leaves_labels_alone_that_all_rows_have_or_none() -> None:
    loss = BinaryCrossEntropyConfig(pos_weight="balanced").build(MANY, "t", None)
    loss.observe(np.array([[1.0, 0, 1], [1, 0, 0], [1, 0, 0], [1, 0, 0]]))
    assert loss.pos_weight is not None
    assert loss.pos_weight.tolist() == [1, 1, 3]


def test_balanced_weights_move_the_decision_to_the_frequency() -> None:
    """The best constant probability of a label is its frequency; balanced, it is one half."""
    target = np.array([[1.0, 0, 0]] * 5 + [[0.0, 1, 1]] * 45)
    for wanted, expected in ((None, [0.1, 0.9, 0.9]), ("balanced", [0.5, 0.5, 0.5])):
        loss = BinaryCrossEntropyConfig(pos_weight=wanted).build(MANY, "t", None)
        loss.observe(target)
        found = fitted_constant(loss, torch.from_numpy(target)).sigmoid()
        torch.testing.assert_close(found, torch.tensor(expected).double(), atol=1e-4, rtol=0)


def fitted_constant(loss: Loss, target: Tensor) -> Tensor:
    free = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([free], max_iter=200, line_search_fn="strong_wolfe", tolerance_change=1e-14)

    def closure() -> float:
        optimizer.zero_grad()
        value = loss(free.expand(len(target), -1), target).mean()
        value.backward()
        return float(value.detach())

    optimizer.step(closure)
    return free.detach()


@pytest.mark.parametrize(
    ("config", "labels", "message"),
    [
        (FocalConfig(alpha=0.3), THREE, "tasks.t.loss.alpha: is for multilabel; classes have `class_weights`"),
        (FocalConfig(pos_weight=2.0), THREE, "tasks.t.loss.pos_weight: is for multilabel"),
        (FocalConfig(pos_weight=2.0, alpha=0.3), MANY, "tasks.t.loss.alpha: has the same purpose as pos_weight"),
        (FocalConfig(pos_weight={"d": 2.0}), MANY, "pos_weight: found the label 'd', expected some of a, b, c"),
        (BinaryCrossEntropyConfig(pos_weight={"no": 2.0}), TWO, "found the label 'no', expected yes"),
        (FocalConfig(), Labels("regression"), "'focal' is for classes or multilabel, but the task is a regression"),
        (LogitAdjustedConfig(), MANY, "'logit-adjusted' is for one class out of several"),
    ],
)
def test_rejections(config: FocalConfig, labels: Labels, message: str) -> None:
    with pytest.raises(UserError, match="tasks.t.loss") as error:
        config.build(labels, "t", None)
    assert message in str(error.value)


def test_focal_of_an_even_guess() -> None:
    loss = FocalConfig(alpha=0.25).build(MANY, "t", None)
    # 1/4 of log 2 for each label, times 1/4 for the label that applies and 3/4 for the others
    expected = math.log(2) / 4 * (0.25 + 0.75 + 0.75) / 3
    assert loss(torch.zeros(1, 3), torch.tensor([[1.0, 0, 0]])).item() == pytest.approx(expected)
