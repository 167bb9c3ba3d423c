import math
from pathlib import Path

import pytest
import torch

from tests.tiny import recipe_content
from weft.build import assemble, build_plan, read_data
from weft.data.tokenizer import Tokenizer
from weft.foundation.errors import UserError
from weft.recipes.assembly import learning_rates
from weft.recipes.recipe import parse_recipe
from weft.schedules.sources import separate
from weft.tasks.building import build_network
from weft.tasks.network import Network
from weft.training.optimizer import OptimizerConfig, build_optimizer, rate_factor, share_of_peak
from weft.training.trainable import FrozenConfig, FullConfig
from weft.weighting.sum import Sum
from weft.weighting.uncertainty import UncertaintyConfig


@pytest.fixture
def network(tiny: Path) -> Network:
    recipe = parse_recipe(recipe_content(tiny), "test")
    data = read_data(recipe, Tokenizer.load(tiny / "body"))
    return build_network(recipe, {name: task.labels for name, task in data.items()}, tiny / "body")


def test_rates_rise_then_fall_to_zero() -> None:
    rates = [share_of_peak("linear", step, steps=10, warmup=4) for step in range(10)]
    assert rates[:4] == pytest.approx([0.2, 0.4, 0.6, 0.8])
    assert rates[4] == 1.0
    assert rates[9] == pytest.approx(1 / 6)
    assert share_of_peak("linear", 10, steps=10, warmup=4) == 0.0


def test_cosine_and_constant_rates() -> None:
    assert share_of_peak("cosine", 0, 8, 0) == 1.0
    assert share_of_peak("cosine", 4, 8, 0) == pytest.approx(0.5)
    assert share_of_peak("cosine", 2, 8, 0) == pytest.approx((1 + math.cos(math.pi / 4)) / 2)
    assert {share_of_peak("constant", step, 9, 0) for step in range(9)} == {1.0}


def test_each_phase_has_its_own_curve_and_a_budget_shrinks_the_warm_up(tiny: Path) -> None:
    content = recipe_content(tiny, epochs=3, phases=[{"epochs": 1, "lr": 0.5}, {"epochs": 2}])
    content["optimizer"] |= {"warmup": 2, "lr": 0.1}
    recipe = parse_recipe(content, "test")
    sizes = {"sentiment": 20, "paraphrase": 40, "similarity": 25}
    plan = build_plan(recipe, separate(sizes), None)
    rates = learning_rates(recipe, plan)
    assert plan.phase_ends == (5, 15)
    assert max(rates(step) for step in range(5)) == 0.5
    assert max(rates(step) for step in range(5, 15)) == 0.1
    assert rates(0) == pytest.approx(0.5 / 3)
    assert rates(5) == pytest.approx(0.1 / 3)
    short = learning_rates(recipe, build_plan(recipe, separate(sizes), 6))
    assert short.warmup == 1
    longer = build_plan(recipe, separate(sizes), 40)
    assert longer.phase_ends == (14, 40)
    assert learning_rates(recipe, longer).warmup == 5  # 2 of 15 steps become 5 of 40


def test_norms_and_biases_do_not_decay(network: Network) -> None:
    optimizer = build_optimizer(
        network, UncertaintyConfig(lr=2e-4).build(("a",)), OptimizerConfig(weight_decay=0.1), [FullConfig()]
    )
    for group in optimizer.param_groups:
        assert {p.ndim > 1 for p in group["params"]} == {group["weight_decay"] == 0.1}
    assert {group["peak"] for group in optimizer.param_groups} == {None, 2e-4}
    held = {p for group in optimizer.param_groups for p in group["params"]}
    assert set(network.parameters()) <= held
    assert isinstance(optimizer, torch.optim.AdamW)


def test_only_what_trains_in_some_phase_is_held(network: Network) -> None:
    optimizer = build_optimizer(network, Sum(), OptimizerConfig(), [FrozenConfig()])
    held = {p for group in optimizer.param_groups for p in group["params"]}
    assert held == {p for name, p in network.named_parameters() if not name.startswith("body.")}


def test_factors_of_layers_and_heads() -> None:
    config = OptimizerConfig(lr=1e-5, head_lr=1e-3, layer_decay=0.5, layer_factors=(1.0, 2.0, 1.0))
    assert rate_factor("body.embeddings.norm.bias", config, 3) == 0.125
    assert rate_factor("body.layers.0.qkv.weight", config, 3) == 0.25
    assert rate_factor("body.layers.1.qkv.weight", config, 3) == 1.0
    assert rate_factor("body.layers.2.qkv.weight", config, 3) == 1.0
    assert rate_factor("body.pooler.weight", config, 3) == 1.0
    assert rate_factor("tasks.a.head.dense.weight", config, 3) == 1.0


def test_a_factor_for_each_layer(network: Network) -> None:
    with pytest.raises(UserError, match="found 3 factors, but the body has 2 layers"):
        build_optimizer(network, Sum(), OptimizerConfig(layer_factors=(1, 1, 1)), [FullConfig()])


def test_rates_of_their_own_are_the_same_in_every_phase(tiny: Path) -> None:
    """A phase with a high rate for frozen training must not multiply the heads' and the losses' own rates."""
    phases = [{"epochs": 1, "trainable": "frozen", "lr": 1e-2}, {"epochs": 1}]
    content = recipe_content(tiny, epochs=2, phases=phases, weighting="uncertainty")
    content["optimizer"] = {"lr": 2e-5, "head_lr": 3e-4, "curve": "constant"}
    made = assemble(parse_recipe(content, "test"))
    rates = learning_rates(made.recipe, made.plan)
    for step in (0, made.plan.steps - 1):
        made.step(made.plan.window(step), rates(step), rates.share(step))
        found = {group["peak"]: group["lr"] for group in made.step.optimizer.param_groups}
        assert found == {None: rates(step), 3e-4: 3e-4, 1e-3: 1e-3}


def test_nothing_left_to_train(tiny: Path) -> None:
    content = recipe_content(tiny, trainable="frozen")
    content["tasks"] = {"similarity": content["tasks"]["similarity"] | {"head": "cosine"}}
    with pytest.raises(UserError, match="nothing is left to train"):
        assemble(parse_recipe(content, "test"))
