"""`weft compare`: two trained models on the rows of the first."""

import json
from pathlib import Path

import pytest

from tests.integration.command import weft
from tests.tiny import recipe_content, write_recipe

pytestmark = pytest.mark.usefixtures("few_resamples")


@pytest.fixture(scope="module")
def runs(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """good: trained on two tasks; bad: hardly trained, on one of them; other: different labels."""
    folder = tmp_path_factory.mktemp("compare")
    content = recipe_content(tiny, epochs=12, optimizer={"lr": 1e-2})
    tasks = {name: content["tasks"][name] | {"pooling": "mean"} for name in ("sentiment", "similarity")}
    weft("train", write_recipe(folder, content | {"tasks": tasks}, "good.toml"), "-o", folder / "good")
    alone = content | {"tasks": {"sentiment": tasks["sentiment"]}, "epochs": 1}
    recipe = write_recipe(folder, alone, "bad.toml")
    weft("train", recipe, "-o", folder / "bad", "--budget", "steps=1", "--seed", 3)
    weft(
        "train", recipe, "-o", folder / "other", "--budget", "steps=1", "--set", 'tasks.sentiment.labels=["good","bad"]'
    )
    return folder


def test_a_model_passes_against_itself(runs: Path) -> None:
    done = weft("compare", runs / "good", runs / "good", "--max-drop", 0)
    assert "The gate is open." in done.stdout
    found = json.loads(weft("compare", runs / "good", runs / "good", "--max-drop", 0, "--json").stdout)
    assert found["open"] is True
    assert [task["task"] for task in found["tasks"]] == ["sentiment", "similarity"]
    assert {task["difference"] for task in found["tasks"]} == {0.0}


def test_a_worse_model_closes_the_gate_with_exit_code_3(runs: Path) -> None:
    done = weft("compare", runs / "good", runs / "bad", "--when", "clear", code=3)
    assert "the drop is larger than 0.005" in done.stdout
    assert "The gate is closed." in done.stdout
    scores = json.loads(weft("compare", runs / "good", runs / "bad", "--json", code=3).stdout)["tasks"]
    assert [task["task"] for task in scores] == ["sentiment"], "the tasks that both models have"
    for side, run in (("old", "good"), ("new", "bad")):
        alone = json.loads(weft("evaluate", runs / run, "--json").stdout)
        assert scores[0][side] == pytest.approx(alone["tasks"]["sentiment"]["accuracy"])
    table = weft("compare", runs / "good", runs / "bad", "--markdown", code=3).stdout
    assert table.startswith("| task | metric | old | new |")
    assert weft("compare", runs / "bad", runs / "good").code == 0


def test_a_file_of_ones_own(runs: Path, tiny: Path) -> None:
    dev = recipe_content(tiny)["tasks"]["sentiment"]["data"]["dev"]
    found = json.loads(weft("compare", runs / "good", runs / "good", "--file", f"sentiment={dev}", "--json").stdout)
    assert [task["task"] for task in found["tasks"]] == ["sentiment"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["good", "other"], "task 'sentiment': the models have different labels"),
        (["good", "bad", "--when", "often"], "--when often: expected possible or clear"),
        (["good", "bad", "--max-drop", "-1"], "--max-drop -1: expected 0 or a positive number"),
        (["good", "bad", "--file", "similarity=x.csv"], "--file similarity: the models do not share this task"),
        (["good", "missing"], "is not a weft model"),
        (["good", "bad", "--json", "--markdown"], "keep one of them"),
    ],
)
def test_rejected(runs: Path, arguments: list[str], message: str) -> None:
    named = [str(runs / one) if one in ("good", "bad", "other", "missing") else one for one in arguments]
    assert message in weft("compare", *named, code=2).stderr
