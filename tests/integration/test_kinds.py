"""Label columns of one file, class weights, chosen metrics, splits and warm starts, through real runs."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import weft
from tests.tiny import BAD, GOOD, files, recipe_content, write_recipe, write_rows
from weft.api import Quiet
from weft.build import read_data
from weft.data.tokenizer import Tokenizer
from weft.recipes.recipe import load_recipe

pytestmark = pytest.mark.usefixtures("few_resamples")


def one_file(folder: Path) -> Path:
    rows = []
    for i in range(60):
        good = i % 3 == 0
        rows.append(
            {
                "text": f"a {(GOOD if good else BAD)[i % 5]} film {i // 4}",
                "mood": "good" if good else "bad",
                "stars": 5 if good else 1 + i % 2,
                "tags": "warm;bright" if good else "cold" if i % 2 else "",
                "price": 10.5 * i,
            }
        )
    return write_rows(folder / "rows.tsv", rows)


def several(tiny: Path, folder: Path) -> dict[str, Any]:
    data = {"train": str(one_file(folder)), "dev_fraction": 0.25}
    return recipe_content(
        tiny,
        tasks={
            "mood": {"kind": "classification", "data": {**data, "label": "mood"}, "class_weights": "balanced"},
            "stars": {"kind": "ordinal", "data": {**data, "label": "stars"}, "metrics": ["kappa", "accuracy"]},
            "tags": {"kind": "multilabel", "data": {**data, "label": "tags"}},
            "price": {"kind": "regression", "data": {**data, "label": "price"}},
            "verdict": {
                "kind": "classification",
                "data": {**data, "label": "stars", "label_map": {"1": "no", "2": "no", "5": "yes"}},
                "loss": "binary-cross-entropy",
            },
        },
    )


def test_one_file_feeds_tasks_of_every_kind(tiny: Path, tmp_path: Path) -> None:
    path = write_recipe(tmp_path, several(tiny, tmp_path))
    model = weft.train(path, tmp_path / "run")
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert list(result["dev"]["stars"]) == ["kappa", "accuracy", "n"]
    assert model.network.task("verdict").labels.names == ("no", "yes")
    assert model.network.task("price").labels.high == 10.5 * 59
    (answer,) = model.predict("price", ["a film"])
    assert answer.label is None
    (tags,) = model.predict("tags", ["a cold film"])
    assert isinstance(tags.label, list)
    scores = model.evaluate(files={"mood": tmp_path / "rows.tsv"}).scores
    assert scores["mood"]["n"] == 60


def test_equal_texts_stay_on_one_side_of_a_split(tiny: Path, tmp_path: Path) -> None:
    recipe = load_recipe(write_recipe(tmp_path, several(tiny, tmp_path)))
    data = read_data(recipe, Tokenizer.load(tiny / "body"))["mood"]
    train = {tuple(data.train.texts(i)) for i in range(len(data.train))}
    dev = {tuple(data.dev.texts(i)) for i in range(len(data.dev))}
    assert train
    assert dev
    assert not train & dev
    assert len(data.train) + len(data.dev) == 60


def test_balanced_weights_make_classes_count_alike(tiny: Path, tmp_path: Path) -> None:
    from weft.tasks.class_weights import class_weights

    recipe = load_recipe(write_recipe(tmp_path, several(tiny, tmp_path)))
    data = read_data(recipe, Tokenizer.load(tiny / "body"))["mood"]
    weights = class_weights(recipe.tasks["mood"], data.labels, data.train.targets, "mood")
    assert weights is not None
    per_row = weights[torch.from_numpy(data.train.targets)]
    assert per_row.mean() == pytest.approx(1)
    shares = [per_row[torch.from_numpy(data.train.targets == c)].sum() for c in (0, 1)]
    assert shares[0] == pytest.approx(float(shares[1]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"class_weights": {"good": 1.0}}, "expected one weight for each of bad, good"),
        ({"class_weights": {"good": 0.0, "bad": 0.0}}, "at least one above 0"),
        ({"metrics": ["pearson"]}, "expected some of accuracy, balanced-accuracy, f1, f1-positive, precision"),
        ({"labels": ["good"]}, "at least two names, all different"),
        ({"labels": ["good", "fine"]}, "expected one of good, fine"),
    ],
)
def test_settings_that_do_not_fit_the_labels(tiny: Path, tmp_path: Path, change: dict[str, Any], message: str) -> None:
    content = several(tiny, tmp_path)
    content["tasks"] = {"mood": {**content["tasks"]["mood"], **change}}
    with pytest.raises(weft.UserError, match=message):
        weft.train(write_recipe(tmp_path, content), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_new_task_joins_a_trained_model_and_the_old_heads_stay(tiny: Path, tmp_path: Path) -> None:
    content = recipe_content(tiny, epochs=1)
    content["tasks"] = {name: content["tasks"][name] for name in ("sentiment", "similarity")}
    weft.train(write_recipe(tmp_path, content), tmp_path / "first")

    notes: list[str] = []

    class Notes(Quiet):
        def noted(self, message: str) -> None:
            notes.append(message)

    content["body"] = "first/model"
    content["tasks"]["mood"] = {"kind": "classification", "batch_size": 4, "data": files(tiny, "sentiment")}
    content["tasks"]["similarity"]["reading"] = "cross"  # its head has another width now
    content["optimizer"]["lr"] = 1e-30
    weft.train(write_recipe(tmp_path, content, "second.toml"), tmp_path / "second", listener=Notes())
    first = load_file(tmp_path / "first" / "model" / "heads.safetensors")
    second = load_file(tmp_path / "second" / "model" / "heads.safetensors")
    name = "tasks.sentiment.head.dense.weight"
    torch.testing.assert_close(second[name], first[name])
    assert any(note.startswith("sentiment: starts with the head of") for note in notes)
    assert any(note.startswith("mood: is not in") for note in notes)
    assert any(note.startswith("similarity: has another head") for note in notes)


def test_masked_texts_are_masked_again_in_prediction(tiny: Path, tmp_path: Path) -> None:
    content = recipe_content(tiny, epochs=1)
    content["tasks"] = {"sentiment": content["tasks"]["sentiment"]}
    content["tasks"]["sentiment"]["data"]["mask"] = ["email"]
    model = weft.train(write_recipe(tmp_path, content), tmp_path / "run")
    one, two = model.predict("sentiment", ["write to a@b.org", "write to x.y@zz.example"])
    assert one == two
