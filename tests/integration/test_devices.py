"""Commands on a simulated GPU: `tests/simulated_gpu.py` says what that covers."""

import csv
import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file

from tests.integration.command import weft
from tests.simulated_gpu import MEMORY
from tests.tiny import matches_task, recipe_content, write_recipe

ON_GPU: dict[str, Any] = {"gpus": 1}
TEXTS = ["a lovely film", "a dull film that sees no cat", "the cat"]


def write(tiny: Path, folder: Path, name: str = "recipe.toml", **changes: Any) -> Path:
    """Dropout, a penalty, an average and surgery in bf16: everything that draws or keeps tensors."""
    optimizer = {"lr": 1e-3, "precision": "bf16", "clip": 1.0}
    content = recipe_content(
        tiny, epochs=1, optimizer=optimizer, surgery="pcgrad", average="ema", penalties=["bregman"], calibrate=True
    )
    content["tasks"]["match"] = matches_task(tiny)
    content["tasks"]["sentiment"] |= {"regularizer": "r-drop", "class_weights": "balanced"}
    return write_recipe(folder, content | changes, name)


@pytest.fixture(scope="module")
def run(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on the GPU that torch finds by itself."""
    folder = tmp_path_factory.mktemp("gpu")
    weft("train", write(tiny, folder), "-o", folder / "run", **ON_GPU)
    return folder / "run"


def weights(run: Path) -> dict[str, Any]:
    return {
        f"{path.name} {name}": tensor
        for path in sorted((run / "model").glob("*.safetensors"))
        for name, tensor in load_file(path).items()
    }


def assert_same_weights(one: Path, two: Path) -> None:
    ours, theirs = weights(one), weights(two)
    assert ours.keys() == theirs.keys()
    assert all(ours[name].equal(theirs[name]) for name in ours)


def table(path: Path) -> Path:
    with path.open("w", newline="", encoding="utf-8") as handle:
        csv.writer(handle).writerows([["text"], *([text] for text in TEXTS)])
    return path


def test_a_run_uses_the_gpu_and_says_so(run: Path) -> None:
    assert json.loads((run / "environment.json").read_text())["device"] == "cuda"
    assert json.loads((run / "result.json").read_text())["peak_memory"] == MEMORY


def test_a_killed_run_goes_on_to_the_same_weights(run: Path, tiny: Path, tmp_path: Path) -> None:
    """Draws come from the generator of the device, which every step seeds."""
    recipe = write(tiny, tmp_path)
    killed = weft("train", recipe, "-o", tmp_path / "run", code=-signal.SIGKILL, kill=["step", 13], **ON_GPU)
    assert killed.code
    weft("train", recipe, "-o", tmp_path / "run", "--resume", **ON_GPU)
    assert_same_weights(tmp_path / "run", run)


def test_a_log_changes_no_weight(run: Path, tiny: Path, tmp_path: Path) -> None:
    recipe = write(tiny, tmp_path, log={"conflicts_every": 2, "conflicts_by_layer": True})
    weft("train", recipe, "-o", tmp_path / "run", **ON_GPU)
    assert_same_weights(tmp_path / "run", run)


def test_answers_and_vectors_are_those_of_a_cpu(run: Path, tmp_path: Path) -> None:
    texts = table(tmp_path / "texts.csv")
    found: dict[str, list[Any]] = {"answers": [], "vectors": [], "scores": []}
    for device in ("cpu", "cuda"):
        answers, vectors = tmp_path / f"{device}.jsonl", tmp_path / f"{device}.npy"
        weft("predict", run, "sentiment", "--input", texts, "--output", answers, "--device", device, **ON_GPU)
        weft("embed", run, "--input", texts, "--output", vectors, "--task", "match", "--device", device, **ON_GPU)
        scores = weft("evaluate", run, "--json", "--device", device, **ON_GPU)
        found["answers"].append([json.loads(line) for line in answers.read_text().splitlines()])
        found["vectors"].append(np.load(vectors))
        found["scores"].append(json.loads(scores.stdout))
    np.testing.assert_allclose(*found["vectors"], atol=1e-5)
    for name in ("answers", "scores"):
        assert_close(*found[name])


def assert_close(one: Any, two: Any) -> None:
    if isinstance(one, dict):
        assert one.keys() == two.keys()
        for key in one:
            assert_close(one[key], two[key])
    elif isinstance(one, list):
        assert len(one) == len(two)
        for ours, theirs in zip(one, two, strict=True):
            assert_close(ours, theirs)
    else:
        assert one == (pytest.approx(two, abs=1e-4, nan_ok=True) if isinstance(one, float) else two)


@pytest.mark.long
def test_every_other_command(run: Path, tiny: Path, tmp_path: Path) -> None:
    texts = table(tmp_path / "texts.csv")
    plain = recipe_content(tiny, epochs=1)
    sentiment = plain["tasks"]["sentiment"]
    weft("predict", run, "similarity", "a cat", "a dog", **ON_GPU)
    weft("mine", run, "--input", texts, "--output", tmp_path / "pairs.csv", "--mode", "neighbours", **ON_GPU)
    weft("probe", run, **ON_GPU)
    weft("train", write(tiny, tmp_path, seed=2), "-o", tmp_path / "other", **ON_GPU)
    weft("soup", run, tmp_path / "other", "-o", tmp_path / "soup", **ON_GPU)
    weft("compare", run, tmp_path / "soup", "--max-drop", 1, **ON_GPU)
    weft("export", run, "--to", "transformers", "-o", tmp_path / "hub", **ON_GPU)
    weft("check", write(tiny, tmp_path), "--audit", **ON_GPU)
    short = ("--budget", "steps=3", "--max-length", 24)
    weft("pretrain", write(tiny, tmp_path), "-o", tmp_path / "pretrained", *short, **ON_GPU)
    added = write_recipe(tmp_path, plain | {"tasks": {"new": sentiment}}, "new.toml")
    taught = recipe_content(tiny, epochs=1, distill={"teachers": [str(run)]}, average="swa")
    student = tmp_path / "student"
    weft("train", write_recipe(tmp_path, taught, "student.toml"), "-o", student, **ON_GPU)
    for old, keep in ((run, "exact"), (run, "rehearse"), (student, "distill")):
        weft("add", old, added, "-o", tmp_path / keep, "--keep", keep, "--max-drop", 5, **ON_GPU)


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("cuda:2", "--device cuda:2: torch finds cuda:0 to cuda:1 here; use one of them"),
        ("mps", "--device mps: expected auto, cpu, cuda or cuda:N"),
    ],
)
def test_devices_that_are_not_there(tiny: Path, tmp_path: Path, device: str, message: str) -> None:
    done = weft("train", write(tiny, tmp_path), "-o", tmp_path / "run", "--device", device, code=2, gpus=2)
    assert message in done.stderr
