from pathlib import Path

import pytest

from tests.tiny import recipe_content, write_recipe
from weft.foundation.errors import UserError
from weft.recipes.library import library
from weft.recipes.recipe import load_recipe, parse_recipe, recipe_toml


@pytest.mark.parametrize("name", library())
def test_shipped_recipes_load_and_survive_a_round_trip(name: str, tmp_path: Path) -> None:
    recipe = load_recipe(name, data_dir=tmp_path)
    path = tmp_path / "copy.toml"
    path.write_text(recipe_toml(recipe), encoding="utf-8")
    assert load_recipe(path) == recipe


def test_paths_are_relative_to_the_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = recipe_content(tmp_path)
    for task in ("sentiment", "paraphrase", "similarity"):
        content["tasks"][task]["data"] |= {"train": f"rows/{task}.tsv", "dev": f"rows/{task}-dev.tsv"}
    path = write_recipe(tmp_path, content)
    monkeypatch.chdir("/")
    assert load_recipe(path).tasks["sentiment"].data.train == str(tmp_path / "rows" / "sentiment.tsv")


def test_presets_need_a_folder() -> None:
    with pytest.raises(UserError, match=r"tasks.sentiment.data: the preset 'sst5' .* --data-dir"):
        load_recipe("multitask")


def test_settings_change_keys(tmp_path: Path) -> None:
    settings = ["optimizer.lr=3e-4", "tasks.sentiment.batch_size=8", "name=other", "tasks.similarity.head=cosine"]
    settings += ["tasks.similarity.reading=bi", "tasks.similarity.head.name=linear"]
    recipe = load_recipe("multitask", settings=settings, data_dir=tmp_path, seed=5)
    assert (recipe.optimizer.lr, recipe.tasks["sentiment"].batch_size) == (3e-4, 8)
    assert (recipe.name, recipe.seed) == ("other", 5)
    assert recipe.tasks["similarity"].head.name == "linear"


@pytest.mark.parametrize("setting", ["lr", "=3", "epochs.x=1"])
def test_settings_that_cannot_be_read(setting: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"--set {setting}"):
        load_recipe("multitask", settings=[setting], data_dir=tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epoch": 3}, "x: epoch: there is no such key; did you mean 'epochs'?"),
        ({"optimizer": {"lrr": 1}}, "x: optimizer.lrr: there is no such key; did you mean 'lr'?"),
        ({"epochs": 0}, "x: epochs: found 0, input should be greater than or equal to 1"),
        ({"epochs": "many"}, "x: epochs: found 'many', input should be a valid integer"),
        ({"tasks": {}}, "x: tasks: "),
        ({"tasks": {"a.b": {"kind": "regression", "data": "stsb"}}}, "the task name 'a.b' must start with a letter"),
        ({"tasks": {"a": {"data": "stsb"}}}, "x: tasks.a.kind: is missing"),
        ({"tasks": {"a": {"kind": "regresion", "data": "stsb"}}}, "x: tasks.a.kind: found 'regresion'"),
        ({"tasks": {"a": {"kind": "regression", "data": "sts"}}}, "'sts' is not a preset; expected one of sst5"),
        (
            {"tasks": {"a": {"kind": "regression", "data": "stsb", "loss": "msee"}}},
            "x: tasks.a.loss: found 'msee', expected one of",
        ),
        (
            {"tasks": {"a": {"kind": "regression", "data": "stsb", "loss": {"name": "mse", "alpha": 2}}}},
            "x: tasks.a.loss.mse.alpha: there is no such key",
        ),
        (
            {"tasks": {"a": {"kind": "regression", "data": "stsb", "poling": "mean"}}},
            "x: tasks.a.poling: there is no such key; did you mean 'pooling'?",
        ),
        ({"name": None}, "x: name: "),
        (
            {"tasks": {"a": {"kind": "regression", "data": "stsb", "range": [5, 5]}}},
            "expected the smaller number first",
        ),
        ({"tasks": {"a": {"kind": "regression", "data": "stsb", "labels": ["x", "y"]}}}, "`labels` names classes"),
        ({"tasks": {"a": {"kind": "ordinal", "data": "sst5", "scale": False}}}, "are for a regression"),
        ({"tasks": {"a": {"kind": "ordinal", "data": "sst5", "labels": ["1", "1.0"]}}}, "two names, all different"),
        ({"schedule": {"name": "capped", "cap": -5}}, "x: schedule.capped.cap: found -5"),
        ({"optimizer": {"betas": [1.0, 0.9]}}, "x: optimizer.betas.0: found 1.0"),
        ({"optimizer": {"lr": float("inf")}}, "x: optimizer.lr: found inf"),
        ({"log": {"conflicts_by_layer": True}}, "conflicts_by_layer needs conflicts_every"),
    ],
)
def test_a_wrong_recipe_names_the_key_and_what_was_expected(
    change: dict[str, object], message: str, tmp_path: Path
) -> None:
    content = recipe_content(tmp_path) | change
    with pytest.raises(UserError) as error:
        parse_recipe(content, "x")
    assert message in str(error.value)


def test_all_wrong_keys_at_once(tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        parse_recipe(recipe_content(tmp_path) | {"epochs": 0, "seeed": 1}, "x")
    assert len(str(error.value).splitlines()) == 2


@pytest.mark.parametrize(
    ("source", "message"),
    [("no-such.toml", "there is no such file"), ("multitsk", "did you mean 'multitask'?"), ("zzz", "weft recipes")],
)
def test_recipes_that_are_not_there(source: str, message: str) -> None:
    with pytest.raises(UserError, match=message.replace("?", r"\?")):
        load_recipe(source)


def test_a_file_that_is_not_toml(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text("epochs = = 3")
    with pytest.raises(UserError, match="is not TOML"):
        load_recipe(path)


def test_odd_keys_survive_a_round_trip(tmp_path: Path) -> None:
    content = recipe_content(tmp_path)
    content["tasks"]["sentiment"]["data"]["label_map"] = {"very bad": "bad", "1.5": "bad", "süß": "good"}
    recipe = parse_recipe(content, "x")
    path = tmp_path / "copy.toml"
    path.write_text(recipe_toml(recipe), encoding="utf-8")
    assert load_recipe(path).tasks["sentiment"].data.label_map == recipe.tasks["sentiment"].data.label_map


def test_a_recipe_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(b'name = "caf\xe9"')
    with pytest.raises(UserError, match="cannot be read as a recipe"):
        load_recipe(path)
