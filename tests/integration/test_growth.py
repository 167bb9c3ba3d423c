"""`weft add` and `weft remove` on real runs."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft as library
from tests.integration.command import weft
from tests.tiny import recipe_content, write_recipe

pytestmark = pytest.mark.usefixtures("few_resamples")
TEXTS = ["a lovely film", "a dull film", "the cat"]


@pytest.fixture(scope="module")
def old(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with two tasks."""
    folder = tmp_path_factory.mktemp("old")
    content = recipe_content(tiny, epochs=12, optimizer={"lr": 1e-2})
    tasks = {name: content["tasks"][name] | {"pooling": "mean"} for name in ("sentiment", "similarity")}
    weft("train", write_recipe(folder, content | {"tasks": tasks}), "-o", folder / "run")
    return folder / "run"


def recipe(folder: Path, tiny: Path, task: str = "paraphrase", **changes: Any) -> Path:
    content = recipe_content(tiny, **changes)
    return write_recipe(folder, content | {"tasks": {task: content["tasks"][task]}}, "new.toml")


def fingerprint(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def result(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "result.json").read_text(encoding="utf-8"))
    return found


def test_exact_leaves_every_old_answer_as_it_is(old: Path, tiny: Path, tmp_path: Path) -> None:
    before = fingerprint(old)
    run = tmp_path / "run"
    done = weft("add", old, recipe(tmp_path, tiny), "-o", run, "--keep", "exact", "--max-drop", 0)
    assert "The gate is open." in done.stdout
    assert "the frozen layers run once per row: pooled vectors" in done.stdout
    found = result(run)
    assert set(found["answers"]) == {"sentiment", "similarity"}
    assert all(own["before"] == own["after"] for own in found["answers"].values())
    assert [own["difference"] for own in found["gate"]["tasks"]] == [0.0, 0.0]
    assert found["untrained"] == ["sentiment", "similarity"]
    one, two = library.load(old), library.load(run)
    assert two.tasks == ["sentiment", "similarity", "paraphrase"]
    assert [a.probabilities for a in one.predict("sentiment", TEXTS)] == [
        a.probabilities for a in two.predict("sentiment", TEXTS)
    ]
    assert two.predict("paraphrase", "the cat", "a cat").probabilities
    assert fingerprint(old) == before, "the old model is untouched"
    assert "Old tasks before and after" in (run / "report.html").read_text(encoding="utf-8")


def test_rehearse_trains_old_and_new_tasks(old: Path, tiny: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    weft("add", old, recipe(tmp_path, tiny), "-o", run, "--keep", "rehearse", "--max-drop", 1)
    found = result(run)
    assert found["untrained"] == []
    assert any(own["before"] != own["after"] for own in found["answers"].values())
    assert found["gate"]["when"] == "possible"


def test_harm_closes_the_gate(old: Path, tiny: Path, tmp_path: Path) -> None:
    """A high rate and no rehearsal: the schedule names the new task alone."""
    before = fingerprint(old)
    harmful = recipe(tmp_path, tiny, epochs=4, schedule={"name": "sequential", "tasks": ["paraphrase"]})
    arguments = ("add", old, harmful, "-o", tmp_path / "run", "--keep", "rehearse", "--set", "optimizer.lr=0.3")
    done = weft(*arguments, code=3)
    assert "The gate is closed." in done.stdout
    assert f"{old} is unchanged" in done.stdout.replace("\n", "")
    assert any(own["closes"] for own in result(tmp_path / "run")["gate"]["tasks"])
    assert fingerprint(old) == before


def test_more_data_for_an_old_task(old: Path, tiny: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    more = recipe(tmp_path, tiny, "sentiment")
    weft("add", old, more, "-o", run, "--keep", "rehearse", "--max-drop", 1)
    model = library.load(run)
    assert model.tasks == ["sentiment", "similarity"], "the additional rows are no task of the model"
    assert set(result(run)["dev"]) == {"sentiment", "similarity", "sentiment-more"}


def test_remove_leaves_the_other_answers(old: Path, tmp_path: Path) -> None:
    weft("remove", old, "similarity", "-o", tmp_path / "out")
    one, two = library.load(old), library.load(tmp_path / "out")
    assert two.tasks == ["sentiment"]
    assert [a.probabilities for a in one.predict("sentiment", TEXTS)] == [
        a.probabilities for a in two.predict("sentiment", TEXTS)
    ]
    np.testing.assert_array_equal(one.embed(TEXTS, "sentiment"), two.embed(TEXTS, "sentiment"))
    assert "was not scored" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "has no task 'mood'" in weft("remove", old, "mood", "-o", tmp_path / "o", code=2).stderr
    assert "a model needs a task" in weft("remove", tmp_path / "out", "sentiment", "-o", tmp_path / "o", code=2).stderr
    assert "already exists" in weft("remove", old, "similarity", "-o", tmp_path / "out", code=2).stderr
    assert not (tmp_path / "o").exists()


def test_a_new_task_with_an_adapter_of_its_own(old: Path, tiny: Path, tmp_path: Path) -> None:
    """Twice: on the plain model, and on the grown one; then with more rows, which train the adapter of their task."""
    changes: dict[str, Any] = {"epochs": 1, "adapter": {"name": "lora", "per_task": True}}
    weft("add", old, recipe(tmp_path, tiny, **changes), "-o", tmp_path / "one", "--keep", "exact", "--max-drop", 0)
    content = recipe_content(tiny, **changes)
    second = write_recipe(tmp_path, content | {"tasks": {"mood": content["tasks"]["sentiment"]}}, "second.toml")
    weft("add", tmp_path / "one", second, "-o", tmp_path / "two", "--keep", "exact", "--max-drop", 0)
    assert all(own["before"] == own["after"] for own in result(tmp_path / "two")["answers"].values())
    one, two = library.load(tmp_path / "one"), library.load(tmp_path / "two")
    assert (set(one.network.adapters), set(two.network.adapters)) == ({"paraphrase"}, {"paraphrase", "mood"})
    assert one.predict("paraphrase", TEXTS, TEXTS) == two.predict("paraphrase", TEXTS, TEXTS)
    more = recipe(tmp_path, tiny, epochs=1)
    weft("add", tmp_path / "two", more, "-o", tmp_path / "more", "--keep", "rehearse", "--max-drop", 1)
    three = library.load(tmp_path / "more")
    assert set(three.network.adapters) == {"paraphrase", "mood"}
    assert three.predict("paraphrase", TEXTS, TEXTS) != two.predict("paraphrase", TEXTS, TEXTS)
    weft("remove", tmp_path / "two", "paraphrase", "-o", tmp_path / "left")
    left = library.load(tmp_path / "left")
    assert set(left.network.adapters) == {"mood"}
    assert left.predict("mood", TEXTS) == two.predict("mood", TEXTS)
