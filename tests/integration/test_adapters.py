"""Adapters through whole runs: trained, saved, loaded, resumed, answered in one pass, combined by surgery, adopted."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import weft
from tests.contracts.registry import variants
from tests.families import write_family
from tests.fingerprint import fingerprint
from tests.integration.test_families import Stop
from tests.tiny import recipe_content, write_recipe
from weft.api import Quiet
from weft.bodies.adapters import AdapterConfig
from weft.bodies.registry import FAMILIES
from weft.build import assemble
from weft.foundation.values import Batch
from weft.inference.joint import Ask
from weft.recipes.assembly import Assembly
from weft.recipes.check import examine
from weft.recipes.recipe import parse_recipe
from weft.run import train_run
from weft.training.trainable import set_trainable

pytestmark = pytest.mark.usefixtures("few_resamples")

CASES = [(name, per_task) for name in variants(AdapterConfig) for per_task in (False, True)]
TEXTS = ["a warm film", "the heron sees a captain", "no"]
SECONDS = ["a cold film", "the heron", "a warm film"]


def adapted(tiny: Path, name: str = "lora", **options: Any) -> dict[str, Any]:
    """A recipe with heads of unlike sizes: three classes, two classes and a number."""
    changes = {
        key: options.pop(key) for key in list(options) if key in ("surgery", "optimizer", "log", "body", "trainable")
    }
    content = recipe_content(tiny, epochs=1, adapter={"name": name, **options}, **changes)
    content["tasks"]["sentiment"] |= {"labels": ["bad", "good", "neither"]}
    return content


@pytest.mark.parametrize(("name", "per_task"), CASES)
def test_a_run_with_an_adapter(tiny: Path, tmp_path: Path, name: str, per_task: bool) -> None:
    content = adapted(tiny, name, per_task=per_task)
    trained = weft.train(write_recipe(tmp_path, content), tmp_path / "run")
    folder = tmp_path / "run" / "model"
    start, end = (load_file(path / "model.safetensors") for path in (tiny / "body", folder))
    assert start.keys() == end.keys()
    assert all(torch.equal(start[key], end[key]) for key in start)  # the body is frozen
    saved = load_file(folder / "adapters.safetensors")
    owners = {key.split(".")[1] for key in saved} if per_task else {key.split(".")[0] for key in saved}
    assert owners == (set(content["tasks"]) if per_task else {"adapter"})
    zero_at_start = [key for key in saved if key.endswith((".b", "up.weight", "decode.weight"))]
    assert zero_at_start
    assert all(saved[key].any() for key in zero_at_start)
    assert "adapters.safetensors" in json.loads((folder / "weft.json").read_text())["checksums"]
    assert f"{name} adapters for {'each task' if per_task else 'all tasks'}" in (folder / "README.md").read_text()
    loaded = weft.load(tmp_path / "run")
    for task, second in (("sentiment", None), ("paraphrase", SECONDS), ("similarity", SECONDS)):
        assert loaded.predict(task, TEXTS, second) == trained.predict(task, TEXTS, second)
    result = json.loads((tmp_path / "run" / "result.json").read_text())["dev"]
    scores = loaded.evaluate().scores
    assert scores["similarity"]["pearson"] == pytest.approx(result["similarity"]["pearson"], abs=1e-6)
    assert scores["sentiment"]["accuracy"] == result["sentiment"]["accuracy"]


def test_the_model_folder_opens_in_transformers_as_the_plain_body(tiny: Path, tmp_path: Path) -> None:
    from transformers import AutoModel

    model = weft.train(write_recipe(tmp_path, adapted(tiny)), tmp_path / "run")
    theirs = AutoModel.from_pretrained(tmp_path / "run" / "model").state_dict()
    plain = AutoModel.from_pretrained(tiny / "body").state_dict()
    assert all(torch.equal(theirs[key], plain[key]) for key in plain)
    assert model.network.adapter is not None


@pytest.mark.parametrize(
    "options", [{"per_task": True}, {"per_task": False}, {"per_task": True, "tasks": ["similarity"]}]
)
def test_answers_to_mixed_requests_equal_answers_one_by_one(
    tiny: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    """With equal texts in several tasks: they are merged only if their states are equal."""
    torch.manual_seed(0)
    model = weft.train(write_recipe(tmp_path, adapted(tiny, **options)), tmp_path / "run", steps=2)
    for name, parameter in model.network.named_parameters():
        if name.startswith("adapter"):
            parameter.data = torch.randn_like(parameter)
    passes: list[int] = []
    model.network.body.register_forward_pre_hook(lambda _, given: passes.append(len(given[0].lengths)))
    found = model.predict_all(TEXTS, SECONDS)
    distinct = {"similarity": 5, "sentiment": 3, "paraphrase": 3}  # "a warm film" is on both sides of similarity
    merged = distinct["similarity"] + distinct["paraphrase"]
    assert passes == [merged if model.network.shares_states else sum(distinct.values())]
    for task, answers in found.items():
        second = None if task == "sentiment" else SECONDS
        for one, other in zip(answers, model.predict(task, TEXTS, second), strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-6)
    vectors = [model.embed(TEXTS, task=task) for task in ("sentiment", "similarity")]
    asks = [Ask(t, [[s] for s in model.texts_alone(t, TEXTS)], vectors=True) for t in ("sentiment", "similarity")]
    for one, other in zip(model.engine.together(asks), vectors, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def gradients(made: Assembly, groups: Sequence[list[Batch]]) -> dict[str, torch.Tensor]:
    made.network.zero_grad()
    for batches in groups:
        for batch, output in zip(batches, made.network(batches), strict=True):
            made.network.task(batch.task).losses(output, batch.target).mean().backward(retain_graph=True)
    return {name: p.grad.clone() for name, p in made.network.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("name", variants(AdapterConfig))
@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-6), ("fp64", 1e-10)])
def test_one_joint_pass_has_the_numbers_of_three_passes(
    tiny: Path, name: str, precision: str, tolerance: float
) -> None:
    content = adapted(tiny, name, per_task=True, optimizer={"precision": precision})
    made = assemble(parse_recipe(content | {"dropout": 0.0, "body_dropout": 0.0}, "joint"), device="cpu")
    set_trainable(made.network, made.recipe.trainable)
    torch.manual_seed(0)
    for key, parameter in made.network.named_parameters():
        if key.startswith("adapters."):
            parameter.data = 0.3 * torch.randn_like(parameter)
    batches = [made.data[part.task].train.batch(part.rows) for part in made.plan.window(0).parts]
    with torch.no_grad():
        together, alone = made.network(batches), [made.network([batch])[0] for batch in batches]
    for one, other in zip(together, alone, strict=True):
        assert (one - other).abs().max() < tolerance
    joint, separate = gradients(made, [batches]), gradients(made, [[batch] for batch in batches])
    assert joint.keys() == separate.keys()
    assert {key.split(".")[0] for key in joint} == {"adapters", "tasks"}
    for key, gradient in joint.items():
        assert (gradient - separate[key]).abs().max() < tolerance, key


@pytest.mark.parametrize("model_type", FAMILIES)
def test_every_family_trains_lora_and_resumes_exactly(tiny: Path, tmp_path: Path, model_type: str) -> None:
    """With SMART, recomputed layers, layer decay and a learned mix of layers."""
    body = write_family(tmp_path / "body", model_type)
    optimizer = {"lr": 1e-3, "layer_decay": 0.8, "gradient_checkpointing": True}
    content = adapted(tiny, per_task=True, dropout=0.1, body=str(body), optimizer=optimizer)
    content["tasks"]["paraphrase"] |= {"pooling": "cls", "regularizer": {"name": "smart", "weight": 0.5}}
    content["tasks"]["sentiment"] |= {"layer": "mix"}
    recipe = parse_recipe(content, model_type)
    train_run(recipe, tmp_path / "straight", Quiet(), device="cpu")
    with pytest.raises(KeyboardInterrupt):
        train_run(recipe, tmp_path / "stopped", Stop(), device="cpu")
    train_run(recipe, tmp_path / "stopped", Quiet(), device="cpu", resume=True)
    assert fingerprint(tmp_path / "stopped") == fingerprint(tmp_path / "straight")


def test_surgery_combines_the_gradients_of_a_shared_adapter(tiny: Path) -> None:
    made = assemble(
        parse_recipe(adapted(tiny, surgery="pcgrad", log={"conflicts_every": 1, "conflicts_by_layer": True}), "test")
    )
    set_trainable(made.network, made.recipe.trainable)
    report = made.step(made.plan.window(0), 1e-3)
    assert report.conflicts is not None
    assert report.conflicts.layers is not None
    assert set(report.conflicts.layers) == {"layers.0", "layers.1"}
    assert all(norm > 0 for norm in report.conflicts.norms.values())


def test_surgery_leaves_adapters_of_single_tasks_alone(tiny: Path) -> None:
    """The body is combined; the gradient of a task's adapter is that of a step without surgery."""
    found = []
    for surgery in ("none", "mgda"):
        content = adapted(tiny, per_task=True, trainable="full", surgery=surgery, optimizer={"lr": 1e-3})
        made = assemble(parse_recipe(content | {"dropout": 0.0, "body_dropout": 0.0}, "test"))
        made.network.train()
        made.step(made.plan.window(0), 0.0)
        found.append({name: p.grad for name, p in made.network.named_parameters() if p.grad is not None})
    one, two = found
    for name, gradient in one.items():
        same = torch.allclose(gradient, two[name], atol=1e-6)
        assert same or name.startswith("body."), name
    assert not torch.allclose(one["body.layers.0.inner.weight"], two["body.layers.0.inner.weight"], atol=1e-6)


def test_rates_follow_layers_and_heads(tiny: Path) -> None:
    optimizer = {"lr": 1e-3, "head_lr": 1e-2, "layer_decay": 0.5}
    made = assemble(parse_recipe(adapted(tiny, per_task=True, optimizer=optimizer), "test"))
    names = {id(p): name for name, p in made.network.named_parameters()}
    rates = {names[id(p)]: (g["factor"], g["peak"]) for g in made.step.optimizer.param_groups for p in g["params"]}
    assert rates["adapters.sentiment.layers.0.query.a"] == (0.5, None)
    assert rates["adapters.similarity.layers.1.value.b"] == (1.0, None)
    assert rates["tasks.sentiment.head.dense.weight"] == (1.0, 1e-2)
    assert not any(name.startswith("body.") for name in rates)


def test_the_body_is_frozen_unless_the_recipe_says_otherwise(tiny: Path) -> None:
    assert parse_recipe(recipe_content(tiny), "test").trainable.name == "full"
    assert parse_recipe(adapted(tiny), "test").trainable.name == "frozen"
    assert parse_recipe(adapted(tiny, trainable="full"), "test").trainable.name == "full"


def test_the_check_counts_what_trains(tiny: Path) -> None:
    full, small = (
        examine(assemble(parse_recipe(content, "test"))) for content in (recipe_content(tiny), adapted(tiny))
    )
    assert full.trained == full.parameters
    heads = 16 * 3 + 3 + 16 * 2 + 2 + 2 * 16 + 1
    assert small.trained == heads + 2 * 2 * (8 * 16 + 16 * 8)  # layers x matrices x (A and B)
    assert any("million of them trained" in line for line in small.lines())
    assert not any("trained;" in line for line in full.lines())
    assert full.gigabytes - small.gigabytes == pytest.approx(12e-9 * (full.trained - small.trained), rel=0.2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"per_task": True, "surgery": "pcgrad"}, "the body is frozen and each task has an adapter of its own"),
        (
            {"per_task": True, "log": {"conflicts_every": 1}},
            "no gradient conflicts to log: the body is frozen and each",
        ),
        ({"per_task": True, "tasks": ["mood"]}, "adapter.tasks: there is no task 'mood'"),
        ({"name": "lorra"}, "adapter: found 'lorra', expected one of 'lora', 'bottleneck', 'pal'"),
        ({"name": "pal", "size": 7}, "adapter.size: found 7, expected a multiple of the body's 2 heads"),
        ({"rnk": 2}, "adapter.lora.rnk: there is no such key; did you mean 'rank'"),
    ],
)
def test_what_cannot_work_is_rejected(tiny: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(weft.UserError, match=message):
        assemble(parse_recipe(adapted(tiny, **changes), "test"))


def test_a_run_starts_with_the_adapters_of_the_model_that_it_names(tiny: Path, tmp_path: Path) -> None:
    weft.train(write_recipe(tmp_path, adapted(tiny, per_task=True)), tmp_path / "run")
    body = str(tmp_path / "run" / "model")
    again = assemble(parse_recipe(adapted(tiny, per_task=True, body=body), "again"))
    saved = load_file(tmp_path / "run" / "model" / "adapters.safetensors")
    weights = dict(again.network.named_parameters())
    assert all(torch.equal(weights[key], tensor) for key, tensor in saved.items())
    assert any("sentiment: its adapter starts with that of" in note for note in again.notes)
    other = assemble(parse_recipe(adapted(tiny, rank=4, body=body), "other"))
    assert any("are not used, because this recipe names another one" in note for note in other.notes)
    assert any("which was trained with another adapter" in note for note in other.notes)


def test_a_model_without_its_adapters_is_damaged(tiny: Path, tmp_path: Path) -> None:
    weft.train(write_recipe(tmp_path, adapted(tiny)), tmp_path / "run", steps=1)
    (tmp_path / "run" / "model" / "adapters.safetensors").unlink()
    with pytest.raises(weft.UserError, match="adapters.safetensors: is damaged or belongs to another model"):
        weft.load(tmp_path / "run")


def test_an_adapter_of_ones_own(tiny: Path, tmp_path: Path) -> None:
    # a name of its own: Python imports a name once, and test_own_parts.py may run in the same process
    shutil.copy(Path(__file__).parents[1] / "own_parts.py", tmp_path / "own_gain.py")
    content = recipe_content(tiny, adapter={"use": "own_gain:GainConfig", "per_task": True})
    recipe = write_recipe(tmp_path, content)
    with pytest.raises(weft.UserError, match="adapter: found 'own_gain:GainConfig'"):
        weft.train(recipe, tmp_path / "run")
    trained = weft.train(recipe, tmp_path / "run", steps=2, trust_code=True)
    loaded = weft.load(tmp_path / "run", trust_code=True)
    assert loaded.network.adapter_of("sentiment") is not None
    assert loaded.predict("sentiment", TEXTS) == trained.predict("sentiment", TEXTS)


@pytest.mark.parametrize("per_task", [False, True])
def test_tasks_of_one_source_with_adapters(tiny: Path, tmp_path: Path, per_task: bool) -> None:
    """Rows that both tasks read are encoded once if the adapter is shared, and for each task if it is not."""
    content = recipe_content(tiny, epochs=2, adapter={"name": "lora", "per_task": per_task})
    content["tasks"] = dict.fromkeys(("mood", "tone"), content["tasks"]["sentiment"])
    model = weft.train(write_recipe(tmp_path, content), tmp_path / "run")
    result = json.loads((tmp_path / "run" / "result.json").read_text())["dev"]
    scores = weft.load(tmp_path / "run").evaluate().scores
    for task in content["tasks"]:
        assert scores[task]["accuracy"] == pytest.approx(result[task]["accuracy"])
        assert model.predict_all(TEXTS)[task][0].score == pytest.approx(model.predict(task, TEXTS)[0].score, abs=1e-6)
