"""The proximal term against a direct computation with a moving average made by hand."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.tiny import recipe_content
from weft.build import assemble
from weft.recipes.assembly import Assembly
from weft.recipes.recipe import parse_recipe


def made(tiny: Path, penalties: list[Any], **changes: Any) -> Assembly:
    content = recipe_content(tiny, penalties=penalties, **changes)
    content["optimizer"] |= {"precision": "fp64"}
    del content["optimizer"]["clip"]
    assembly = assemble(parse_recipe(content, "test"), device="cpu")
    assembly.network.train()
    return assembly


def gradients(assembly: Assembly, number: int) -> dict[str, torch.Tensor]:
    window = assembly.plan.window(number)
    assembly.step.optimizer.zero_grad()
    assembly.step._gradients(window, assembly.step.weighting.slopes(window.tasks, next(assembly.network.parameters())))
    return {name: p.grad.clone() for name, p in assembly.network.named_parameters() if p.grad is not None}


def test_the_term_is_the_divergence_from_the_moving_average(tiny: Path) -> None:
    plain = made(tiny, [], dropout=0.0, body_dropout=0.0)
    anchored = made(tiny, [{"name": "bregman", "weight": 0.7, "beta": 0.9}], dropout=0.0, body_dropout=0.0)
    start = copy.deepcopy(anchored.network)
    for assembly in (plain, anchored):
        assembly.step(assembly.plan.window(0), 1e-2)
    # at the first step model and average are one, so both runs have made the same step
    for one, other in zip(plain.network.parameters(), anchored.network.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)
    average = copy.deepcopy(anchored.network)
    with torch.no_grad():
        for mean, first in zip(average.parameters(), start.parameters(), strict=True):
            mean.mul_(0.1).add_(0.9 * first)

    window, network = anchored.plan.window(1), anchored.network
    batches = [anchored.data[part.task].train.batch(part.rows) for part in window.parts]
    before = average(batches)
    network.zero_grad()
    total = torch.zeros((), dtype=torch.float64)
    for batch, output, earlier in zip(batches, network(batches), before, strict=True):
        p, q = (network.task(batch.task).loss.read(o) for o in (output, earlier.detach()))
        if batch.task == "similarity":
            total = total + (p - q).square().mean()
        else:
            total = total + ((p - q) * (p / q).log()).sum(dim=1).mean()
    (0.7 * total).backward()
    expected = {name: p.grad.clone() for name, p in network.named_parameters() if p.grad is not None}
    without, with_term = gradients(plain, 1), gradients(anchored, 1)
    assert max(float(g.abs().max()) for g in expected.values()) > 1e-5
    for name, gradient in expected.items():
        torch.testing.assert_close(with_term[name] - without[name], gradient, rtol=1e-6, atol=1e-10)


def test_both_models_have_the_same_dropout_masks(tiny: Path) -> None:
    """Otherwise the term would be there at the first step, where model and average are one."""
    with_term = made(tiny, [{"name": "bregman", "weight": 1000.0}], dropout=0.4, body_dropout=0.3)
    plain = made(tiny, [], dropout=0.4, body_dropout=0.3)
    for (name, one), other in zip(gradients(with_term, 0).items(), gradients(plain, 0).values(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-9, msg=name)


@pytest.mark.parametrize(("weight", "moves"), [(0.01, True), (1000.0, False)])
def test_the_distance_of_weights_holds_them_back(tiny: Path, weight: float, moves: bool) -> None:
    ends = []
    for penalties in ([], [{"name": "bregman-weights", "weight": weight, "beta": 0.999}]):
        assembly = made(tiny, penalties, dropout=0.0, body_dropout=0.0)
        start = torch.nn.utils.parameters_to_vector(assembly.network.parameters()).detach()
        for number in range(6):
            assembly.step(assembly.plan.window(number), 1e-3)
        end = torch.nn.utils.parameters_to_vector(assembly.network.parameters()).detach()
        ends.append(float((end - start).norm()))
    assert (ends[1] > 0.8 * ends[0]) == moves
