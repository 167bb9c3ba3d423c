"""Training steps against a plain padded loop over transformers, in float64 and without dropout."""

from pathlib import Path

import pytest
import torch

from tests.families import write_family
from tests.parity.harness import Twin
from tests.tiny import recipe_content
from weft.bodies.registry import FAMILIES
from weft.bodies.weights import read_shape
from weft.build import build_plan, read_data
from weft.data.tokenizer import Tokenizer
from weft.recipes.assembly import learning_rates
from weft.recipes.recipe import parse_recipe
from weft.schedules.sources import separate
from weft.tasks.building import build_network
from weft.training.methods import Methods, Numerics
from weft.training.optimizer import build_optimizer
from weft.training.step import Step


@pytest.mark.parametrize(("steps", "accumulate"), [(200, 1), (50, 3)])
def test_steps_equal_a_plain_padded_loop(tiny: Path, steps: int, accumulate: int) -> None:
    compare_steps(tiny, tiny / "body", steps, accumulate)


@pytest.mark.parametrize("model_type", FAMILIES)
@pytest.mark.usefixtures("exact_rotation")
def test_steps_of_every_family_equal_a_plain_padded_loop(tiny: Path, tmp_path: Path, model_type: str) -> None:
    compare_steps(tiny, write_family(tmp_path, model_type), 20, 1)


def compare_steps(tiny: Path, body: Path, steps: int, accumulate: int) -> None:
    content = recipe_content(tiny, body=str(body), epochs=steps * accumulate, dropout=0.0, body_dropout=0.0)
    content["optimizer"] |= {"precision": "fp64", "accumulate": accumulate}
    if not FAMILIES[read_shape(body).model_type].has_pooler:
        content["tasks"]["paraphrase"]["pooling"] = "cls"
    recipe = parse_recipe(content, "parity")
    data = read_data(recipe, Tokenizer.load(body))
    labels = {name: task.labels for name, task in data.items()}
    network = build_network(recipe, labels, body, torch.float64)
    train = {name: task.train for name, task in data.items()}
    plan = build_plan(recipe, separate({name: len(dataset) for name, dataset in train.items()}), None)
    weighting = recipe.weighting.build(tuple(recipe.tasks))
    optimizer = build_optimizer(network, weighting, recipe.optimizer, [recipe.trainable])
    step = Step(network, train, optimizer, Methods(weighting), Numerics(torch.device("cpu"), clip=1.0), seed=1)

    rates = learning_rates(recipe, plan)
    twin = Twin(network)
    plain = torch.optim.AdamW(twin.decayed(), betas=(0.9, 0.999), eps=1e-8)
    network.train()
    for number in range(steps):
        window = plan.window(number)
        lr = rates(number)
        step(window, lr)

        rows = {task: [p.rows for p in window.parts if p.task == task] for task in window.tasks}
        batches = [
            train[task].batch(torch.cat([torch.from_numpy(r) for r in found]).numpy()) for task, found in rows.items()
        ]
        for group in plain.param_groups:
            group["lr"] = lr
        plain.zero_grad()
        twin.loss(batches).backward()
        torch.nn.utils.clip_grad_norm_(twin.parameters(), 1.0)
        plain.step()
    assert twin.distance(network) < 1e-8
