"""What trains, how fast, and in which phase: checked on the weights themselves."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.contracts.registry import variants
from tests.tiny import recipe_content, write_recipe
from weft import UserError, train
from weft.build import assemble
from weft.foundation.values import Window
from weft.recipes.recipe import parse_recipe
from weft.schedules.plan import Plan
from weft.training.optimizer import rate_factor
from weft.training.step import Step
from weft.training.trainable import TrainableConfig, set_trainable

MODES: list[Any] = ["full", {"name": "full", "embeddings": False}, "frozen", {"name": "layers", "layers": [1]}]
MODES += [{"name": "layers", "layers": [0, 1]}, {"name": "layers", "layers": [0], "embeddings": True}]


def built(tiny: Path, **changes: Any) -> tuple[Step, Plan]:
    made = assemble(parse_recipe(recipe_content(tiny, **changes), "test"))
    set_trainable(made.network, made.recipe.modes()[0])
    made.network.train()
    return made.step, made.plan


def gradients(step: Step, window: Window) -> None:
    """Leave a window's combined gradient on the parameters."""
    step._gradients(window, step.weighting.slopes(window.tasks, next(step.network.parameters())))
    if step.methods.keep_apart:
        step.apart.combine(step.methods.surgery)


def test_every_mode_is_tried() -> None:
    tried = {mode if isinstance(mode, str) else mode["name"] for mode in MODES}
    assert tried == set(variants(TrainableConfig))


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_what_is_frozen_keeps_its_bytes_and_what_has_a_gradient_moves(tiny: Path, mode: Any) -> None:
    step, plan = built(tiny, trainable=mode, optimizer={"lr": 1e-3, "weight_decay": 0.1})
    expected = parse_recipe(recipe_content(tiny, trainable=mode), "x").trainable
    before = {name: p.detach().clone() for name, p in step.network.named_parameters()}
    had_gradient = set()
    for number in range(3):
        step(plan.window(number), 1e-3)
        had_gradient |= {
            name for name, p in step.network.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0
        }
    for name, parameter in step.network.named_parameters():
        if not expected.trains(name):
            assert torch.equal(parameter, before[name]), name
        elif name in had_gradient:
            assert not torch.equal(parameter, before[name]), name
    assert {name for name in had_gradient if name.startswith("tasks.")}
    assert bool({name for name in had_gradient if name.startswith("body.")}) == (mode != "frozen")


def test_frozen_then_full(tiny: Path, tmp_path: Path) -> None:
    """The body stays as it was through the first phase, and moves in the second."""
    phases = [{"epochs": 1, "trainable": "frozen", "lr": 1e-2}, {"epochs": 1}]
    content = recipe_content(tiny, epochs=2, phases=phases)
    train(write_recipe(tmp_path, content), tmp_path / "both")
    content = recipe_content(tiny, epochs=1, trainable="frozen")
    frozen = train(write_recipe(tmp_path, content), tmp_path / "frozen")
    first = built(tiny)[0].network.body
    for (name, p), q in zip(frozen.network.body.named_parameters(), first.parameters(), strict=True):
        assert torch.equal(p, q), name
    records = (tmp_path / "both" / "metrics.jsonl").read_text().splitlines()
    assert sum('"lr": 0.01,' in record for record in records) == 1  # the peak of the first phase


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trainable": {"name": "layers", "layers": [2]}}, "trainable.layers: found 2, but the body has layers 0 to 1"),
        ({"phases": [{"epochs": 1}]}, "`epochs` is 2, but the phases have 1"),
        ({"optimizer": {"precision": "fp16"}}, 'precision: "fp16" needs a GPU'),
        ({"schedule": {"name": "staggered", "first": "mood"}}, "schedule.first: found 'mood'"),
    ],
)
def test_settings_that_cannot_be(tiny: Path, tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        train(write_recipe(tmp_path, recipe_content(tiny, **change)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("n", [2, 3])
def test_accumulating_equals_a_larger_batch(tiny: Path, n: int) -> None:
    """Whole runs in float64, dropout off."""
    ends = []
    for batch_size, accumulate in ((2, n), (2 * n, 1)):
        content = recipe_content(tiny, epochs=3, dropout=0.0, body_dropout=0.0, schedule="independent")
        for task in content["tasks"].values():
            task["batch_size"] = batch_size
        content["optimizer"] = {"lr": 1e-3, "precision": "fp64", "accumulate": accumulate}
        step, plan = built(tiny, **{key: value for key, value in content.items() if key != "name"})
        for number in range(plan.steps):
            step(plan.window(number), 1e-3)
        ends.append(list(step.network.parameters()))
    for a, b in zip(*ends, strict=True):
        assert (a - b).abs().max() < 1e-9


def test_each_layer_moves_by_its_factor(tiny: Path) -> None:
    """With plain SGD the update is the rate times the gradient: ratios are exact."""
    optimizer = {"lr": 0.5, "head_lr": 2.0, "layer_decay": 0.25, "layer_factors": [1.0, 0.5], "precision": "fp64"}
    step, plan = built(tiny, dropout=0.0, body_dropout=0.0, optimizer=optimizer)
    config = parse_recipe(recipe_content(tiny, optimizer=optimizer), "x").optimizer
    groups = [{key: g[key] for key in ("params", "factor", "peak")} for g in step.optimizer.param_groups]
    step.optimizer = torch.optim.SGD(groups, lr=1.0)
    before = {name: p.detach().clone() for name, p in step.network.named_parameters()}
    step(plan.window(0), 0.5)
    for name, parameter in step.network.named_parameters():
        if parameter.grad is not None:
            speed = 0.5 * rate_factor(name, config, 2) if name.startswith("body.") else 2.0
            expected = before[name] - speed * parameter.grad
            torch.testing.assert_close(parameter.detach(), expected, rtol=0, atol=1e-15)
    assert rate_factor("body.layers.0.qkv.weight", config, 2) == 0.25
    assert rate_factor("body.layers.1.qkv.weight", config, 2) == 0.5


def test_a_tasks_layer_factors_act_on_its_own_share_alone(tiny: Path) -> None:
    plain = {"dropout": 0.0, "body_dropout": 0.0, "optimizer": {"precision": "fp64"}}

    def body_gradients(tasks: list[str], factors: dict[str, Any] | None) -> dict[str, torch.Tensor]:
        content = recipe_content(tiny, **plain)
        content["tasks"] = {name: dict(content["tasks"][name]) for name in tasks}
        if factors and "sentiment" in tasks:
            content["tasks"]["sentiment"]["layer_factors"] = factors
        content.pop("name")
        step, plan = built(tiny, **content)
        gradients(step, plan.window(0))
        return {name: p.grad.clone() for name, p in step.network.body.named_parameters() if p.grad is not None}

    factors = {"layers": [1], "beta": 3.0, "alpha": 0.5}
    sentiment = body_gradients(["sentiment"], None)
    other = body_gradients(["similarity"], None)
    scaled = body_gradients(["sentiment", "similarity"], factors)
    by_layer = {"layers.0": 0.5, "layers.1": 3.0}
    for name, gradient in scaled.items():
        factor = by_layer.get(".".join(name.split(".")[:2]), 1.0)
        expected = factor * sentiment[name] + other[name]
        torch.testing.assert_close(gradient, expected, rtol=0, atol=1e-12)
    assert scaled.keys() == sentiment.keys() == other.keys()  # the unused pooler has no gradient at all


def test_layer_factors_must_name_layers(tiny: Path, tmp_path: Path) -> None:
    content = recipe_content(tiny)
    content["tasks"]["sentiment"]["layer_factors"] = {"layers": [5]}
    with pytest.raises(UserError, match="layer_factors.layers: found 5, but the body has layers 0 to 1"):
        train(write_recipe(tmp_path, content), tmp_path / "run")


def test_checkpointing_gives_the_same_gradients_with_dropout(tiny: Path) -> None:
    found = []
    for checkpointing in (False, True):
        step, plan = built(tiny, dropout=0.2, body_dropout=0.2, optimizer={"gradient_checkpointing": checkpointing})
        gradients(step, plan.window(1))
        found.append([p.grad for p in step.network.parameters() if p.grad is not None])
    assert len(found[0]) == len(found[1])
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)


def test_bf16_trains_close_to_fp32_with_fp32_weights(tiny: Path) -> None:
    losses = {}
    for precision in ("fp32", "bf16"):
        step, plan = built(tiny, dropout=0.0, body_dropout=0.0, optimizer={"precision": precision, "lr": 1e-3})
        losses[precision] = [step(plan.window(i), 1e-3).losses["sentiment"] for i in range(4)]
        assert {p.dtype for p in step.network.parameters()} == {torch.float32}
    assert losses["bf16"] != losses["fp32"]
    assert losses["bf16"] == pytest.approx(losses["fp32"], rel=0.03)
