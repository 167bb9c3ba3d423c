"""SMART and R-Drop: the terms themselves, and what they do to a step."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.tiny import recipe_content
from weft.build import assemble
from weft.foundation.values import DistinctTexts
from weft.kinds.labels import Labels
from weft.recipes.assembly import Assembly
from weft.recipes.recipe import parse_recipe
from weft.regularizers.base import Divergence
from weft.regularizers.r_drop import RDropConfig
from weft.regularizers.smart import SmartConfig

THREE = Labels("classification", ("a", "b", "c"))


def model(weights: Tensor) -> Any:
    """A small nonlinear function of "embeddings" [t, w], two tokens to a row."""
    return lambda embedded, draw: torch.tanh(embedded.view(2, 2, -1) @ weights).sum(dim=1)  # noqa: ARG005


def softmax_kl(o1: Tensor, o2: Tensor) -> Tensor:
    p, q = o1.softmax(1), o2.softmax(1)
    return (p * (p / q).log()).sum(1) + (q * (q / p).log()).sum(1)


@pytest.mark.parametrize("projection", ["gradient", "normalize", "ball"])
@pytest.mark.parametrize("steps", [1, 3])
def test_smart_against_a_direct_computation(projection: str, steps: int) -> None:
    torch.manual_seed(1)
    embedded = torch.randn(4, 5, dtype=torch.float64)
    weights = torch.randn(5, 3, dtype=torch.float64)
    run = model(weights)
    config = SmartConfig(weight=0.7, steps=steps, sigma=0.1, epsilon=0.05, step_size=0.3, projection=projection)  # type: ignore[arg-type]
    torch.manual_seed(9)
    got = config.build()(run, embedded, run(embedded, 0), Divergence(THREE, lambda o: o.softmax(dim=1)))

    torch.manual_seed(9)
    noise = torch.randn(4, 5, dtype=torch.float64) * 0.1
    for _ in range(steps):
        noise = noise.clone().requires_grad_()
        value = softmax_kl(run(embedded + noise, 0), run(embedded, 0)).sum()
        value.backward()
        moved = noise.detach() + 0.3 * noise.grad  # type: ignore[operator]
        if projection == "gradient":
            unit = torch.stack([row / max(abs(x) for x in row.tolist()) for row in noise.grad])  # type: ignore[union-attr]
            noise = noise.detach() + 0.3 * unit
        elif projection == "ball":
            noise = torch.clip(moved, min=-0.05, max=0.05)
        else:
            noise = torch.stack([row / (max(abs(x) for x in row.tolist()) + 0.05) for row in moved])
    expected = 0.7 * softmax_kl(run(embedded + noise, 0), run(embedded, 0))
    torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-12)
    assert (got > 0).all()


def test_divergences_by_kind() -> None:
    one, two = torch.tensor([[0.2], [0.9]]), torch.tensor([[0.5], [0.9]])
    numbers = Divergence(Labels("regression"), lambda o: o[:, 0])
    torch.testing.assert_close(numbers(one, two), torch.tensor([0.09, 0.0]))
    coins = Divergence(Labels("multilabel", ("a", "b")), torch.sigmoid)
    p = torch.tensor([[0.0, 2.0]])
    q = torch.tensor([[1.0, 2.0]])
    a, b = 0.5, float(torch.sigmoid(torch.tensor(1.0)))
    expected = (a - b) * (0.0 - 1.0)
    torch.testing.assert_close(coins(p, q), torch.tensor([expected]))
    classes = Divergence(THREE, lambda o: o.softmax(dim=1))
    x, y = torch.randn(4, 3), torch.randn(4, 3)
    torch.testing.assert_close(classes(x, y), softmax_kl(x, y))


def made(tiny: Path, regularizer: Any, **changes: Any) -> Assembly:
    content = recipe_content(tiny, **changes)
    content["tasks"] = {
        "sentiment": content["tasks"]["sentiment"] | ({"regularizer": regularizer} if regularizer else {})
    }
    assembly = assemble(parse_recipe(content, "test"))
    assembly.network.train()
    return assembly


def losses(assembly: Assembly) -> float:
    window = assembly.plan.window(0)
    slopes = assembly.step.weighting.slopes(window.tasks, next(assembly.network.parameters()))
    totals = assembly.step._gradients(window, slopes)
    return float(totals.losses[0] + totals.terms[0])


def test_clean_and_perturbed_pass_share_their_dropout_masks(tiny: Path) -> None:
    """With noise that does not count, nothing but other masks could make the term differ from zero."""
    still = {"name": "smart", "projection": "ball", "epsilon": 1e-12, "sigma": 1e-12, "weight": 1000.0}
    term = losses(made(tiny, still, dropout=0.5, body_dropout=0.3)) - losses(
        made(tiny, {**still, "weight": 1e-9}, dropout=0.5, body_dropout=0.3)
    )
    assert abs(term) < 1e-6
    other_masks = {"name": "r-drop", "weight": 1000.0}
    assert losses(made(tiny, other_masks, dropout=0.5, body_dropout=0.3)) > 1.0
    assert losses(made(tiny, other_masks, dropout=0.0, body_dropout=0.0)) < 1.0


def test_the_inner_step_leaves_no_gradient_on_any_weight(tiny: Path) -> None:
    assembly = made(tiny, "smart")
    network = assembly.network
    batch = assembly.data["sentiment"].train.batch(assembly.plan.window(0).parts[0].rows)
    embedded = network.body.embed(batch.texts[0]).detach()

    def run(states: Tensor, draw: int) -> Tensor:
        return network.outputs(states, DistinctTexts.of([batch.texts]), [batch])[0]

    task = network.task("sentiment")
    smart = task.regularizer
    noise = smart._ascend(run, embedded, torch.randn_like(embedded) * 1e-5, run(embedded, 0).detach(), task.divergence)  # type: ignore[union-attr,operator]
    assert noise.abs().amax(dim=1) == pytest.approx(torch.full((len(noise),), 1e-3), rel=0.1)
    assert all(parameter.grad is None for parameter in network.parameters())


@pytest.mark.parametrize("regularizer", ["smart", "r-drop"])
def test_a_regularizer_changes_the_weights(tiny: Path, regularizer: str) -> None:
    ends = []
    for chosen in (None, {"name": regularizer, "weight": 5.0}):
        assembly = made(tiny, chosen, dropout=0.2)
        for number in range(3):
            assembly.step(assembly.plan.window(number), 1e-2)
        ends.append(assembly.network.body.layers[0].qkv.weight.detach())  # type: ignore[union-attr,index]
    assert not torch.equal(*ends)


def test_on_real_text_with_default_settings_the_term_counts() -> None:
    """The packaged body, the starter data: the smoothness term is far from rounding error."""
    from weft.recipes.recipe import load_recipe

    recipe = load_recipe("starter", settings=["tasks.sentiment.regularizer=smart"])
    content = recipe.model_copy(update={"tasks": {"sentiment": recipe.tasks["sentiment"]}})
    with_term = assemble(content)
    plain = assemble(content.model_copy(update={"dropout": 0.0}))
    for assembly in (with_term, plain):
        assembly.network.train()
    task = with_term.network.task("sentiment")
    batch = with_term.data["sentiment"].train.batch(with_term.plan.window(0).parts[0].rows)
    place = (0, 0, "sentiment")
    embedded, (output,) = with_term.step._forward(with_term.network, [batch], place)
    term = with_term.step._regularize(batch, place, embedded, output)
    assert task.regularizer is not None
    assert float(term.mean().detach()) > 1e-7  # in fp32 a divergence of equal outputs is below 1e-12


def ascended(assembly: Assembly, projection: str) -> tuple[float, float]:
    """The divergence along the perturbation that SMART finds, and along random noise with tokens of the same norm."""
    network, task = assembly.network, assembly.network.task("sentiment")
    batch = assembly.data["sentiment"].train.batch(assembly.plan.window(0).parts[0].rows)
    embedded = network.body.embed(batch.texts[0]).detach()

    def run(states: Tensor, draw: int) -> Tensor:
        return network.outputs(states, DistinctTexts.of([batch.texts]), [batch])[0]

    smart = SmartConfig(projection=projection).build()  # type: ignore[arg-type]
    torch.manual_seed(4)
    start = torch.randn_like(embedded) * smart.config.sigma
    clean = run(embedded, 0).detach()
    noise = smart._ascend(run, embedded, start, clean, task.divergence)
    random = torch.randn(50, *embedded.shape)
    random *= noise.norm(dim=1, keepdim=True) / random.norm(dim=2, keepdim=True)
    with torch.no_grad():
        found = task.divergence(run(embedded + noise, 0), clean).mean()
        by_chance = torch.stack([task.divergence(run(embedded + other, 0), clean).mean() for other in random]).mean()
    return float(found), float(by_chance)


@pytest.mark.parametrize(("projection", "times"), [("gradient", (100, 1e9)), ("normalize", (0.5, 2))])
def test_the_ascent_finds_a_direction_that_matters(projection: str, times: tuple[float, float]) -> None:
    """On the packaged body, after a few steps. What `normalize` finds is hardly better than chance."""
    from weft.recipes.recipe import load_recipe

    recipe = load_recipe("starter", settings=["body_dropout=0"])
    recipe = recipe.model_copy(update={"tasks": {"sentiment": recipe.tasks["sentiment"]}})
    assembly = assemble(recipe)
    assembly.network.train()
    for number in range(4):
        assembly.step(assembly.plan.window(number), 5e-5)
    assembly.network.eval()
    found, by_chance = ascended(assembly, projection)
    assert times[0] < found / by_chance < times[1]


def test_the_log_has_the_raw_loss_and_the_term_apart(tiny: Path) -> None:
    """The raw loss is that of the same pass without a regularizer; weightings learn from it alone."""
    with_term = made(tiny, {"name": "r-drop", "weight": 50.0}, dropout=0.3, weighting="uncertainty")
    plain = made(tiny, {"name": "r-drop", "weight": 1e-9}, dropout=0.3, weighting="uncertainty")
    for one in (with_term, plain):
        # the norm of the whole gradient does depend on the term
        one.step.numerics = replace(one.step.numerics, clip=None)
    reports = [one.step(one.plan.window(0), 1e-3) for one in (with_term, plain)]
    assert reports[0].losses == reports[1].losses
    assert reports[0].terms["sentiment"] > 0.01
    weights = [one.step.weighting.w["sentiment"] for one in (with_term, plain)]  # type: ignore[union-attr,index]
    assert torch.equal(*weights)


def test_r_drop_weighs_labels_and_divergence_as_its_paper() -> None:
    """Theirs: CE_1 + CE_2 + alpha / 2 (KL + KL). With equal cross-entropies, half of that is CE + ours."""
    output, other, alpha = torch.randn(5, 3), torch.randn(5, 3), 3.0
    divergence = Divergence(THREE, lambda o: o.softmax(dim=1))
    term = RDropConfig(weight=alpha).build()(lambda *_: other, torch.zeros(1), output, divergence)
    torch.testing.assert_close(2 * term, alpha / 2 * softmax_kl(output, other))
