from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.contracts.registry import variants
from tests.tiny import recipe_content
from weft.build import build_plan, read_data
from weft.data.tokenizer import Tokenizer
from weft.foundation.errors import RunError
from weft.foundation.values import Part, Window
from weft.recipes.recipe import parse_recipe
from weft.schedules.plan import Plan
from weft.schedules.sources import separate
from weft.surgery import SurgeryConfig
from weft.tasks.building import build_network
from weft.training.methods import Methods, Numerics
from weft.training.optimizer import build_optimizer
from weft.training.step import Step


def build(tiny: Path, **changes: object) -> tuple[Step, Plan]:
    content = recipe_content(tiny, **changes)
    content["optimizer"] |= {"precision": "fp64"}
    recipe = parse_recipe(content, "test")
    data = read_data(recipe, Tokenizer.load(tiny / "body"))
    network = build_network(recipe, {name: task.labels for name, task in data.items()}, tiny / "body", torch.float64)
    network.train()
    train = {name: task.train for name, task in data.items()}
    weighting = recipe.weighting.build(tuple(recipe.tasks))
    optimizer = build_optimizer(network, weighting, recipe.optimizer, [recipe.trainable])
    step = Step(network, train, optimizer, Methods(weighting), Numerics(torch.device("cpu")), seed=5)
    return step, build_plan(recipe, separate({name: len(d) for name, d in train.items()}), None)


def gradients(step: Step, window: Window) -> list[torch.Tensor]:
    step.optimizer.zero_grad()
    step._gradients(window, step.weighting.slopes(window.tasks, next(step.network.parameters())))
    return [p.grad.clone() for p in step.parameters if p.grad is not None]


def test_passes_of_unequal_size_equal_one_large_batch(tiny: Path) -> None:
    step, _ = build(tiny, dropout=0.0, body_dropout=0.0)
    rows = torch.arange(9).numpy()
    together = Window(0, (Part("sentiment", 0, rows), Part("similarity", 0, rows[:7])))
    apart = Window(
        0,
        (
            Part("sentiment", 0, rows[:4]),
            Part("similarity", 0, rows[:5]),
            Part("sentiment", 1, rows[4:8]),
            Part("similarity", 1, rows[5:7]),
            Part("sentiment", 2, rows[8:]),
        ),
    )
    one, two = gradients(step, together), gradients(step, apart)
    assert len(one) == len(two) > 10
    for a, b in zip(one, two, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


def test_tasks_that_are_not_in_a_window_keep_their_heads(tiny: Path) -> None:
    step, _ = build(tiny)
    before = {name: p.clone() for name, p in step.network.named_parameters()}
    step(Window(0, (Part("sentiment", 0, torch.arange(4).numpy()),)), 1e-3)
    moved = {name for name, p in step.network.named_parameters() if not torch.equal(p, before[name])}
    assert "tasks.sentiment.head.dense.weight" in moved
    assert "body.layers.0.qkv.weight" in moved
    assert not [name for name in moved if "paraphrase" in name or "similarity" in name]


def test_dropout_depends_on_the_step_and_nothing_else(tiny: Path) -> None:
    step, plan = build(tiny, dropout=0.5)
    first = gradients(step, plan.window(1))
    torch.rand(17)
    gradients(step, plan.window(0))
    assert all(torch.equal(a, b) for a, b in zip(first, gradients(step, plan.window(1)), strict=True))
    other = Window(2, plan.window(1).parts)
    assert not all(torch.equal(a, b) for a, b in zip(first, gradients(step, other), strict=True))


def test_the_report_has_raw_losses_norm_and_tokens(tiny: Path) -> None:
    step, plan = build(tiny)
    window = plan.window(0)
    report = step(window, 1e-3)
    assert list(report.losses) == ["sentiment", "paraphrase", "similarity"]
    assert report.losses["sentiment"] == pytest.approx(0.69, abs=0.2)
    expected = sum(
        sum(len(sequence.ids) for sequence in step.ahead.datasets[part.task].sequences(int(row)))
        for part in window.parts
        for row in part.rows
    )
    assert report.tokens == expected
    assert report.norm > 0


def test_a_loss_that_is_not_a_number_stops_before_any_weight_moves(tiny: Path) -> None:
    step, plan = build(tiny)
    with torch.no_grad():
        step.network.task("paraphrase").head.dense.bias.fill_(float("nan"))
    before = [p.clone() for p in step.network.body.parameters()]
    with pytest.raises(RunError, match=r"step 4: the loss of paraphrase is not a finite number.*'paraphrase': \["):
        step(plan.window(3), 1e-3)
    assert all(torch.equal(a, b) for a, b in zip(before, step.network.body.parameters(), strict=True))


@pytest.mark.parametrize("name", variants(SurgeryConfig))
def test_surgery_hands_on_what_is_not_finite(tiny: Path, name: str) -> None:
    step, plan = build(tiny)
    surgery = variants(SurgeryConfig)[name]().build()  # type: ignore[attr-defined]
    step.methods = replace(step.methods, surgery=surgery)
    with torch.no_grad():
        step.network.body.layers[0].inner.weight.fill_(float("nan"))  # type: ignore[operator, union-attr]
    with pytest.raises(RunError, match="is not a finite number; no weight of this step was changed"):
        step(plan.window(0), 1e-3)


@pytest.mark.parametrize(("device", "keeps"), [("cpu", True), ("cuda", False)])
def test_the_kept_gradient_is_for_processors(tiny: Path, device: str, keeps: bool) -> None:
    step, _ = build(tiny)
    network, optimizer = step.network, step.optimizer
    Step(network, {}, optimizer, step.methods, Numerics(torch.device(device)), seed=5)
    assert network.body.embeddings.tokens.keeps_gradient is keeps
