"""The conflict log: what it says, and that it changes nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import weft
from tests.tiny import recipe_content, write_recipe
from weft.build import assemble
from weft.recipes.recipe import parse_recipe

pytestmark = pytest.mark.usefixtures("few_resamples")


def run(tiny: Path, folder: Path, name: str, **changes: Any) -> Path:
    folder.mkdir(exist_ok=True)
    weft.train(write_recipe(folder, recipe_content(tiny, **changes), f"{name}.toml"), folder / name)
    return folder / name


@pytest.mark.parametrize("surgery", ["none", "pcgrad"])
def test_weights_are_the_same_bytes_with_and_without_it(tiny: Path, tmp_path: Path, surgery: str) -> None:
    common = {"surgery": surgery, "weighting": "uncertainty", "dropout": 0.3}
    off = run(tiny, tmp_path, "off", **common)
    on = run(tiny, tmp_path, "on", **common, log={"conflicts_every": 2, "conflicts_by_layer": True})
    for file in ("model.safetensors", "heads.safetensors"):
        assert (off / "model" / file).read_bytes() == (on / "model" / file).read_bytes()
    records = [json.loads(line) for line in (on / "metrics.jsonl").read_text().splitlines()]
    logged = [record for record in records if record["event"] == "conflicts"]
    steps = [record for record in records if record["event"] == "step"]
    assert [record["step"] for record in logged] == list(range(1, len(steps) + 1, 2))
    pairs = {"sentiment|paraphrase", "sentiment|similarity", "paraphrase|similarity"}
    for record in logged:
        assert set(record["cosines"]) == pairs
        assert all(-1.0001 <= value <= 1.0001 for value in record["cosines"].values())
        assert set(record["norms"]) == {"sentiment", "paraphrase", "similarity"}
        assert {"embeddings", "layers.0", "layers.1"} <= set(record["layers"])
    assert not [line for line in (off / "metrics.jsonl").read_text().splitlines() if "cosines" in line]


def test_cosines_and_norms_are_those_of_the_gradients(tiny: Path) -> None:
    content = recipe_content(tiny, dropout=0.0, body_dropout=0.0, log={"conflicts_every": 1})
    content["optimizer"]["precision"] = "fp64"
    made = assemble(parse_recipe(content, "test"))
    window = made.plan.window(0)
    gradients = {}
    for part in window.parts:
        made.network.zero_grad()
        batch = made.data[part.task].train.batch(part.rows)
        (output,) = made.network([batch])
        made.network.task(part.task).losses(output, batch.target).mean().backward()
        pieces = [torch.zeros_like(p) if p.grad is None else p.grad for p in made.network.body.parameters()]
        gradients[part.task] = torch.cat([piece.flatten() for piece in pieces])
    conflicts = made.step(window, 1e-3).conflicts
    assert conflicts is not None
    for pair, cosine in conflicts.cosines.items():
        one, two = (gradients[task] for task in pair.split("|"))
        assert cosine == pytest.approx(float(torch.cosine_similarity(one, two, dim=0)), abs=1e-9)
    for task, norm in conflicts.norms.items():
        assert norm == pytest.approx(float(gradients[task].norm()), rel=1e-9)
