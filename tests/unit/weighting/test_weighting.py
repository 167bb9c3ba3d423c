import math

import pytest
import torch

from weft.foundation.errors import UserError
from weft.weighting.dwa import DynamicWeightAverageConfig
from weft.weighting.fixed import FixedConfig
from weft.weighting.random import RandomConfig
from weft.weighting.uncertainty import UncertaintyConfig


def test_uncertainty_against_its_closed_form_value_and_gradient() -> None:
    weighting = UncertaintyConfig().build(("a", "b"))
    with torch.no_grad():
        weighting.w["a"].fill_(0.4)
        weighting.w["b"].fill_(-1.2)
    losses = torch.tensor([0.7, 3.0], requires_grad=True)
    total = weighting(losses, ("a", "b")).sum()
    assert float(total.detach()) == pytest.approx(math.exp(-0.4) * 0.7 + 0.4 + math.exp(1.2) * 3.0 - 1.2)
    total.backward()
    torch.testing.assert_close(losses.grad, torch.tensor([math.exp(-0.4), math.exp(1.2)]))
    torch.testing.assert_close(weighting.w["a"].grad, torch.tensor(1 - math.exp(-0.4) * 0.7))
    torch.testing.assert_close(weighting.w["b"].grad, torch.tensor(1 - math.exp(1.2) * 3.0))


def test_an_absent_task_leaves_its_weight_alone() -> None:
    weighting = UncertaintyConfig().build(("a", "b"))
    weighting(torch.tensor([1.0]), ("b",)).sum().backward()
    assert weighting.w["a"].grad is None
    assert weighting.w["b"].grad is not None


def test_uncertainty_comes_to_rest_where_every_task_counts_alike() -> None:
    weighting = UncertaintyConfig().build(("a", "b"))
    optimizer = torch.optim.SGD(weighting.parameters(), lr=0.05)
    losses = torch.tensor([0.2, 5.0])
    for _ in range(3000):
        optimizer.zero_grad()
        weighting(losses, ("a", "b")).sum().backward()
        optimizer.step()
    weighted = weighting.slopes(("a", "b"), losses) * losses
    torch.testing.assert_close(weighted, torch.ones(2), rtol=1e-3, atol=1e-3)


def test_dwa_gives_more_to_the_task_that_falls_slowly() -> None:
    weighting = DynamicWeightAverageConfig(every=2, temperature=1.0).build(("a", "b"))
    like = torch.zeros(())
    for losses in ([4.0, 2.0], [2.0, 2.0]):  # first interval: means 3 and 2
        weighting.observe(torch.tensor(losses), ("a", "b"))
        assert weighting.slopes(("a", "b"), like).tolist() == [1, 1]
    for losses in ([1.5, 2.0], [1.5, 2.0]):  # second: 1.5 and 2
        weighting.observe(torch.tensor(losses), ("a", "b"))
    expected = 2 * torch.softmax(torch.tensor([0.5, 1.0]), dim=0)
    torch.testing.assert_close(weighting.slopes(("a", "b"), like), expected)
    torch.testing.assert_close(weighting.slopes(("b",), like), expected[1:])


def test_random_weights_follow_from_the_seed_and_average_one() -> None:
    weighting = RandomConfig().build(("a", "b", "c"))
    drawn = []
    for seed in range(400):
        weighting.prepare(seed)
        drawn.append(weighting.slopes(("a", "b", "c"), torch.zeros(())))
        assert float(drawn[-1].sum()) == pytest.approx(3)
    assert torch.stack(drawn).mean(0) == pytest.approx(torch.ones(3), abs=0.12)
    weighting.prepare(7)
    assert torch.equal(weighting.slopes(("a", "b", "c"), torch.zeros(())), drawn[7])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"a": 1.0}, "expected one for each of a, b"),
        ({"a": 0.0, "b": 0.0}, "at least one above 0"),
        ({"a": -1.0, "b": 1.0}, "at least 0"),
    ],
)
def test_fixed_weights_that_do_not_fit(weights: dict[str, float], message: str) -> None:
    with pytest.raises(UserError, match=message):
        FixedConfig(weights=weights).build(("a", "b"))
