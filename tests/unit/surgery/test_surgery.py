"""Surgery on the Gramian against the methods' own definitions on the full gradients."""

from itertools import permutations, product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torchjd.aggregation import IMTLG, MGDA, AlignedMTL, CAGrad

from tests.contracts.registry import variants
from weft.foundation.randomness import seeded
from weft.surgery import SurgeryConfig
from weft.surgery.pcgrad import PCGradConfig
from weft.surgery.upgrad import RIDGE, LeastSquaresProjector, UPGradConfig

ACTIVE = {name: config for name, config in variants(SurgeryConfig).items() if name != "none"}


def combine(name: str, gradients: Tensor) -> Tensor:
    surgery = ACTIVE[name]().build()  # type: ignore[attr-defined]
    return surgery(gradients @ gradients.T) @ gradients


def projected(gradients: Tensor, i: int, order: tuple[int, ...]) -> Tensor:
    """PCGrad's inner loop as the paper writes it: g_i, freed of what opposes each g_j in turn."""
    g = gradients[i].clone()
    for j in order:
        if j != i and g @ gradients[j] < 0:
            g -= (g @ gradients[j]) / (gradients[j] @ gradients[j]) * gradients[j]
    return g


def test_pcgrad_over_three_tasks_is_one_of_all_orders() -> None:
    gradients = torch.tensor([[1.0, 2.0, -1.0], [-2.0, 0.5, 1.0], [0.3, -2.0, -0.5]], dtype=torch.float64)
    choices = [{tuple(projected(gradients, i, order).tolist()) for order in permutations(range(3))} for i in range(3)]
    possible = torch.stack([torch.tensor(rows, dtype=torch.float64).sum(0) for rows in product(*choices)])
    assert len(possible) > 1  # here the order matters
    seen = set()
    for seed in range(20):
        with seeded(seed, "surgery"):
            found = combine("pcgrad", gradients)
        distances = (possible - found).abs().amax(dim=1)
        assert distances.min() < 1e-12
        seen.add(int(distances.argmin()))
    assert len(seen) > 1


numbers = st.lists(st.floats(-5, 5, allow_subnormal=False), min_size=8, max_size=8)


@given(numbers)
def test_pcgrad_of_two_tasks_opposes_neither(values: list[float]) -> None:
    gradients = torch.tensor(values, dtype=torch.float64).view(2, 4)
    for i in range(2):
        own = projected(gradients, i, (0, 1))
        assert own @ gradients[1 - i] >= -1e-9 * (1 + gradients.square().sum())
    torch.testing.assert_close(
        combine("pcgrad", gradients),
        projected(gradients, 0, (1,)) + projected(gradients, 1, (0,)),
        rtol=1e-9,
        atol=1e-9,
    )


@pytest.mark.parametrize(
    ("name", "aggregator"),
    [
        ("mgda", MGDA()),
        ("cagrad", CAGrad(c=0.5)),
        ("imtl-g", IMTLG()),
        ("aligned-mtl", AlignedMTL()),
    ],
)
def test_the_gramian_is_enough(name: str, aggregator: torch.nn.Module) -> None:
    torch.manual_seed(2)
    for m in (2, 3, 5):
        gradients = torch.randn(m, 40, dtype=torch.float64)
        torch.testing.assert_close(combine(name, gradients), aggregator(gradients), rtol=1e-5, atol=1e-6)


@given(st.integers(2, 6), st.integers(1, 9), st.integers(0, 10_000))
def test_upgrad_solves_the_problem_of_its_paper(tasks: int, width: int, seed: int) -> None:
    """`min w' G w` over `w >= u`: optimal exactly if w and the gradient G w are feasible and exclude each other."""
    generator = torch.Generator().manual_seed(seed)
    gradients = torch.randn(tasks, width, dtype=torch.float64, generator=generator)
    gramian = gradients @ gradients.T
    gramian /= gramian.trace()
    rows = torch.eye(tasks, dtype=torch.float64) / tasks
    weights = LeastSquaresProjector()(rows, gramian)
    slack, slope = weights - rows, weights @ (gramian + RIDGE * torch.eye(tasks, dtype=torch.float64))
    assert (slack >= -1e-12).all()
    assert (slope >= -1e-9).all()
    assert (slack * slope).abs().max() < 1e-9
    torch.testing.assert_close(UPGradConfig().build()(gramian), weights.sum(0))


def test_scales_are_as_documented() -> None:
    """Where tasks agree, PCGrad is the sum, UPGrad and CAGrad are means, MGDA and IMTL-G are one gradient."""
    same = torch.tensor([[1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    lengths = {name: float(combine(name, same)[0]) for name in ACTIVE}
    assert lengths["pcgrad"] == pytest.approx(2)
    for name in ("upgrad", "mgda", "imtl-g"):
        assert lengths[name] == pytest.approx(1, abs=0.02), name
    assert 0.9 < lengths["cagrad"] <= 1.51
    assert PCGradConfig().name == "pcgrad"


@pytest.mark.parametrize("name", ACTIVE)
@given(st.floats(-4, 4), st.integers(0, 1000))
def test_weights_do_not_depend_on_the_scale_of_the_gradients(name: str, exponent: float, seed: int) -> None:
    """Losses fall by orders of magnitude during a run; a method must not turn itself off on the way."""
    gradients = torch.randn(3, 7, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    scaled = 10**exponent * gradients
    weights = []
    for one in (gradients, scaled):
        with seeded(seed, "surgery"):
            weights.append(ACTIVE[name]().build()(one @ one.T))  # type: ignore[attr-defined]
    torch.testing.assert_close(weights[1], weights[0], rtol=1e-5, atol=1e-5)
    assert weights[1].any()
