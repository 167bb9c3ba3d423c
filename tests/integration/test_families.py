"""Training a body of every family with all that touches its layers: exactly resumed, and by two processes."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.families import write_family
from tests.fingerprint import fingerprint
from tests.integration.test_distributed import assert_equal_runs
from tests.integration.together import train_together
from tests.tiny import recipe_content
from weft.api import Quiet
from weft.bodies.registry import FAMILIES
from weft.build import assemble
from weft.recipes.check import examine
from weft.recipes.recipe import parse_recipe
from weft.run import train_run
from weft.training.trainable import set_trainable

pytestmark = pytest.mark.usefixtures("few_resamples")


def content(tiny: Path, folder: Path, model_type: str, **changes: Any) -> dict[str, Any]:
    """SMART, surgery, factors by layer and task, layer decay and layers that are computed again."""
    body = write_family(folder / f"body-{model_type}", model_type)
    optimizer = {"lr": 1e-3, "weight_decay": 0.01, "clip": 1.0, "layer_decay": 0.8, "gradient_checkpointing": True}
    made = recipe_content(tiny, body=str(body), epochs=1, optimizer=optimizer | changes.pop("optimizer", {}), **changes)
    made["tasks"]["paraphrase"] |= {"pooling": "cls", "regularizer": {"name": "smart", "weight": 0.5}}
    made["tasks"]["sentiment"] |= {"layer": "mix", "layer_factors": {"layers": [0], "beta": 2.0, "alpha": 0.5}}
    return made | {"surgery": "pcgrad"}


class Stop(Quiet):
    def stepped(self, step: int, report: Any, seconds: float) -> None:  # noqa: ARG002
        if step == 3:
            raise KeyboardInterrupt


@pytest.mark.parametrize("model_type", FAMILIES)
def test_an_interrupted_run_ends_with_the_same_bytes(tiny: Path, tmp_path: Path, model_type: str) -> None:
    recipe = parse_recipe(content(tiny, tmp_path, model_type), model_type)
    train_run(recipe, tmp_path / "straight", Quiet(), device="cpu")
    with pytest.raises(KeyboardInterrupt):
        train_run(recipe, tmp_path / "stopped", Stop(), device="cpu")
    train_run(recipe, tmp_path / "stopped", Quiet(), device="cpu", resume=True)
    assert fingerprint(tmp_path / "stopped") == fingerprint(tmp_path / "straight")


@pytest.mark.long
def test_two_processes_train_what_one_trains(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "randn_like", torch.ones_like)  # SMART's noise, as in the other processes
    exact = {"dropout": 0.0, "body_dropout": 0.0, "optimizer": {"precision": "fp64", "eps": 1e-4}}
    cases = {name: content(tiny, tmp_path, name, **exact) for name in FAMILIES}
    train_together(tmp_path, cases)
    for name, case in cases.items():
        train_run(parse_recipe(case, name), tmp_path / "one" / name, Quiet(), device="cpu")
        assert_equal_runs(tmp_path / "one" / name, tmp_path / name)


@pytest.mark.parametrize("model_type", FAMILIES)
def test_layers_that_train_and_layers_that_do_not(tiny: Path, tmp_path: Path, model_type: str) -> None:
    """`trainable` names sets of weights: all layers of ALBERT are layer 0."""
    made = content(tiny, tmp_path, model_type, trainable={"name": "layers", "layers": [0]})
    assembly = assemble(parse_recipe(made, model_type), device="cpu")
    body = assembly.network.body
    before = {name: parameter.clone() for name, parameter in body.named_parameters()}
    set_trainable(assembly.network.train(), assembly.recipe.trainable)
    assembly.step(assembly.plan.window(0), 1e-3)
    moved = {name for name, parameter in body.named_parameters() if not torch.equal(parameter, before[name])}
    assert moved
    assert all(name.startswith("layers.0.") for name in moved)


@pytest.mark.parametrize("model_type", FAMILIES)
def test_check_says_whether_types_tell_texts_apart(tiny: Path, tmp_path: Path, model_type: str) -> None:
    made = assemble(parse_recipe(content(tiny, tmp_path, model_type), model_type), device="cpu")
    findings = examine(made)
    said = [line for line in findings.lines() if "has no token type embeddings" in line]
    assert bool(said) != made.network.body.has_segments
    assert findings.seconds > 0
