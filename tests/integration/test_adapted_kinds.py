"""Adapters of tasks whose labels are of words, and of tasks that compare vectors: trained, saved and loaded."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import weft
from tests.integration.test_distributed import assert_equal_runs
from tests.integration.together import train_together
from tests.tagged import recipe, rows
from tests.tiny import files, matches_task, recipe_content, write_body
from weft.api import Quiet
from weft.recipes.recipe import parse_recipe
from weft.run import train_run

pytestmark = pytest.mark.usefixtures("few_resamples")
LORA = {"name": "lora", "per_task": True}
TEXTS = ["a film sees cat, heron no lovely!", "a film sees dog no dull", "no"]


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A body, and train and dev files with tags."""
    folder = tmp_path_factory.mktemp("words")
    write_body(folder / "body")
    for split, own in (("train", rows(32, 0)), ("dev", rows(8, 1))):
        lines = [json.dumps(row) for row in own]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def tagged(folder: Path, **changes: Any) -> dict[str, Any]:
    return recipe(folder, "jsonl", text="tokens", label="slots") | {"epochs": 2} | changes


def trained_adapters(run: Path, body: Path, tasks: set[str]) -> None:
    """Each task has an adapter that has learnt, and the body is as it was."""
    start, end = (load_file(folder / "model.safetensors") for folder in (body, run / "model"))
    assert all(torch.equal(start[key], end[key]) for key in start)
    saved = load_file(run / "model" / "adapters.safetensors")
    assert {key.split(".")[1] for key in saved} == tasks
    assert all(saved[key].any() for key in saved if key.endswith(".b"))


def test_tags_with_adapters(words: Path, tmp_path: Path) -> None:
    trained = weft.train(tagged(words, adapter=LORA), tmp_path / "run", device="cpu", progress=False)
    trained_adapters(tmp_path / "run", words / "body", {"slots", "intent"})
    loaded = weft.load(tmp_path / "run", "cpu")
    answers = loaded.predict("slots", TEXTS)
    assert answers == trained.predict("slots", TEXTS)
    assert any(answer.label for answer in answers), "some words have a tag"
    assert loaded.evaluate().scores == trained.evaluate().scores
    together = loaded.predict_all(TEXTS)
    assert together["slots"] == answers, "two tasks in one pass, each with its own adapter"
    assert [answer.label for answer in together["intent"]] == [a.label for a in trained.predict("intent", TEXTS)]
    loaded.network.adapters["slots"].load_state_dict(loaded.network.adapters["intent"].state_dict())
    assert loaded.predict("slots", TEXTS) != answers, "the answers depend on the adapter of the task"


def test_matches_with_adapters(tiny: Path, tmp_path: Path) -> None:
    sentiment = {"kind": "classification", "batch_size": 4, "data": files(tiny, "sentiment")}
    content = recipe_content(tiny, adapter=LORA, tasks={"match": matches_task(tiny), "sentiment": sentiment})
    trained = weft.train(content, tmp_path / "run", device="cpu", progress=False)
    trained_adapters(tmp_path / "run", tiny / "body", {"match", "sentiment"})
    loaded = weft.load(tmp_path / "run", "cpu")
    vectors = loaded.embed(TEXTS, "match")
    np.testing.assert_array_equal(vectors, trained.embed(TEXTS, "match"))
    assert loaded.predict("match", TEXTS, TEXTS[::-1]) == trained.predict("match", TEXTS, TEXTS[::-1])
    assert loaded.evaluate().scores == trained.evaluate().scores
    both = loaded.predict_all(TEXTS, TEXTS[::-1])
    assert both["match"] == loaded.predict("match", TEXTS, TEXTS[::-1])
    loaded.network.adapters["match"].load_state_dict(loaded.network.adapters["sentiment"].state_dict())
    assert not np.array_equal(loaded.embed(TEXTS, "match"), vectors), "the vectors depend on the adapter of the task"


@pytest.mark.long
def test_tags_in_two_processes_equal_one(words: Path, tmp_path: Path) -> None:
    """With a softmax and with a CRF, with and without adapters; float64 without dropout."""
    exact = {"dropout": 0.0, "body_dropout": 0.0, "epochs": 1, "checkpoint": {"every_steps": 2}}
    exact["optimizer"] = {"lr": 1e-3, "precision": "fp64"}
    cases = {"plain": tagged(words, **exact), "adapted": tagged(words, adapter=LORA, **exact)}
    cases["crf"] = recipe(words, "jsonl", text="tokens", label="slots", loss="crf") | exact
    train_together(tmp_path / "two", cases)
    for name, content in cases.items():
        train_run(parse_recipe(content, name), tmp_path / "one" / name, Quiet(), device="cpu")
        assert_equal_runs(tmp_path / "one" / name, tmp_path / "two" / name)
