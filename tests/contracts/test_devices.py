"""Every variant that takes part in a step, on a simulated GPU: it trains what a CPU trains, in float64 without dropout.

`tests/simulated_gpu.py` says what the simulation covers.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.contracts.test_together import CASES, FURTHER, content_of
from tests.families import write_family
from tests.integration.test_distributed import SMART, assert_equal_runs, cases, exact, records
from tests.integration.together import train_all, train_together
from tests.tagged import recipe as tagged_recipe
from tests.tagged import rows
from tests.tiny import matches_task, recipe_content, write_body
from weft.bodies.registry import FAMILIES
from weft.training.distributed import SOLO

pytestmark = pytest.mark.usefixtures("few_resamples")
SMOKE = ["surgery-upgrad", "regularizer-smart", "penalties-bregman", "recomputed"]
"""cases of a run without long tests: one of each way to leave the device or to create tensors on it"""
PRECISIONS = ("fp32", "bf16", "fp16")
MIXED: dict[str, dict[str, Any]] = {
    "joint": {},
    "apart": {
        "surgery": "cagrad",
        "weighting": "uncertainty",
        "log": {"conflicts_every": 1, "conflicts_by_layer": True},
    },
    "recomputed": {"optimizer": {"gradient_checkpointing": True, "accumulate": 2}},
    "smart": {"tasks": {"regularizer": SMART}, "penalties": ["l2", "bregman"]},
    "adapted": {"adapter": {"name": "bottleneck", "per_task": True}},
    "untrained": {"trainable": "frozen", "schedule": "alternating"},
}
"""what meets every precision"""


def tagged(folder: Path, **changes: Any) -> dict[str, Any]:
    for split, own in (("train", rows(12, 0)), ("dev", rows(6, 1))):
        (folder / f"{split}.jsonl").write_text("\n".join(map(json.dumps, own)) + "\n", encoding="utf-8")
    if not (folder / "body").exists():
        write_body(folder / "body", dropout=0.0)
    content = tagged_recipe(folder, "jsonl", "tokens", "slots", **changes)
    return content | {"epochs": 1, "dropout": 0.0, "optimizer": {"lr": 1e-3, "precision": "fp64"}}


def family(tiny: Path, folder: Path, name: str) -> dict[str, Any]:
    content = exact(tiny, body=str(write_family(folder / name, name)))
    content["tasks"]["paraphrase"]["pooling"] = "mean"
    content["tasks"]["match"] = matches_task(tiny)
    return content


def mixed(tiny: Path, name: str, precision: str) -> dict[str, Any]:
    changes = dict(MIXED[name])
    own = changes.pop("tasks", {})
    optimizer = {"lr": 1e-3, "clip": 1.0, "precision": precision, **changes.pop("optimizer", {})}
    content = recipe_content(tiny, epochs=1, dropout=0.0, body_dropout=0.0, optimizer=optimizer, **changes)
    content["tasks"]["sentiment"] |= own
    if name == "untrained":  # a head without parameters on a frozen body has no gradient
        content["tasks"]["similarity"]["head"] = "cosine"
    return content


def trained(recipes: dict[str, dict[str, Any]], tmp: pytest.TempPathFactory) -> tuple[Path, Path]:
    """All recipes, trained on the CPU and on a simulated GPU."""
    cpu, gpu = (tmp.mktemp(name) for name in ("cpu", "gpu"))
    train_together(gpu, recipes, count=1, device="cuda")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "randn_like", torch.ones_like)
        train_all(cpu, recipes, SOLO)
    return cpu, gpu


@pytest.fixture(scope="module")
def smoke(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    recipes = {case: content_of(tiny, case) if case in CASES else exact(tiny) | FURTHER[case] for case in SMOKE}
    return trained(recipes, tmp_path_factory)


@pytest.mark.parametrize("case", SMOKE)
def test_a_gpu_trains_what_a_cpu_trains(case: str, smoke: tuple[Path, Path]) -> None:
    cpu, gpu = smoke
    assert json.loads((gpu / case / "environment.json").read_text())["device"] == "cuda"
    assert_equal_runs(cpu / case, gpu / case)


REST = [case for case in [*CASES, *FURTHER] if case not in (*SMOKE, "bf16")]
WHOLE = [
    "gathered",
    "gathered apart",
    "windows",
    "uncertainty",
    "logged",
    "smart and penalties",
    "distilled average",
    "one source, pcgrad",
]
TAGS: dict[str, dict[str, Any]] = {
    "tags": {},
    "crf": {"loss": "crf"},
    "all subwords": {"subwords": "all", "regularizer": "r-drop"},
}


@pytest.fixture(scope="module")
def rest(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("bodies")
    recipes = {case: content_of(tiny, case) if case in CASES else exact(tiny) | FURTHER[case] for case in REST}
    recipes |= {case: cases(tiny)[case] for case in WHOLE}
    recipes |= {case: tagged(folder, **changes) for case, changes in TAGS.items()}
    recipes |= {name: family(tiny, folder, name) for name in FAMILIES}
    return trained(recipes, tmp_path_factory)


@pytest.mark.long
@pytest.mark.parametrize("case", [*REST, *WHOLE, *TAGS, *FAMILIES])
def test_a_gpu_trains_what_a_cpu_trains_in_every_case(case: str, rest: tuple[Path, Path]) -> None:
    cpu, gpu = rest
    assert_equal_runs(cpu / case, gpu / case)


@pytest.fixture(scope="module")
def by_precision(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("precisions")
    recipes = {f"{name}-{precision}": mixed(tiny, name, precision) for name in MIXED for precision in PRECISIONS}
    train_together(folder, recipes, count=1, device="cuda")
    return folder


def losses(run: Path) -> list[float]:
    return [loss for record in records(run) if record["event"] == "step" for loss in record["losses"].values()]


@pytest.mark.long
@pytest.mark.parametrize("name", MIXED)
def test_half_precision_trains_nearly_what_fp32_trains(name: str, by_precision: Path) -> None:
    """The casts are those of torch's autocast for CUDA; the first steps of fp16 may be skipped to find its scale."""
    full, *halves = (np.array(losses(by_precision / f"{name}-{precision}")) for precision in PRECISIONS)
    for half in halves:
        assert np.isfinite(half).all()
        assert not np.array_equal(half, full), "nothing was cast"
        np.testing.assert_allclose(half, full, atol=0.1)


@pytest.mark.long
def test_two_gpus_train_what_one_trains(tiny: Path, tmp_path: Path) -> None:
    """Each process has a device of its own; gloo sums the values in place of NCCL."""
    recipes = {case: cases(tiny)[case] for case in ("gathered apart", "uncertainty", "smart and penalties")}
    for count in (1, 2):
        train_together(tmp_path / str(count), recipes, count=count, device="cuda")
    for case in recipes:
        assert_equal_runs(tmp_path / "1" / case, tmp_path / "2" / case)
