"""Tasks with matches, from a recipe to metrics, predictions, reports and every method of training."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import weft
from tests.contracts.registry import variants
from tests.tiny import ANIMALS, BAD, GOOD, files, matches_task, recipe_content, write_rows
from weft import UserError
from weft.api import Quiet
from weft.build import assemble
from weft.recipes.recipe import parse_recipe
from weft.run import train_run
from weft.schedules import ScheduleConfig
from weft.surgery import SurgeryConfig
from weft.weighting import WeightingConfig

pytestmark = pytest.mark.usefixtures("few_resamples")
GATHERING = {"name": "in-batch-negatives", "gather": True}


def write_triples(folder: Path) -> dict[str, str]:
    """Train rows with a hard negative, and dev rows without; the same animal matches."""
    triples = [
        {"text": f"a {one} {word}", "text2": f"the {one} sees {word}", "negative": f"the {ANIMALS[i - 1]} sees {word}"}
        for i, one in enumerate(ANIMALS)
        for word in (*GOOD, *BAD)
    ]
    pairs = [{"text": row["text"], "text2": row["text2"]} for row in triples[::2]]
    train, dev = write_rows(folder / "train.tsv", triples), write_rows(folder / "dev.tsv", pairs)
    return {"train": str(train), "dev": str(dev), "text2": "text2", "negative": "negative"}


def test_training_on_matches_and_hard_negatives(tiny: Path, tmp_path: Path) -> None:
    tasks = {"match": {"kind": "matches", "pooling": "mean", "data": write_triples(tmp_path)}}
    content = recipe_content(tiny, epochs=3, tasks=tasks, dropout=0.0)
    model = weft.train(content, tmp_path / "run", device="cpu", progress=False)
    records = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    dev = [record["dev"]["match"] for record in records if record["event"] == "evaluation"]
    assert list(dev[0]) == ["recall-at-10", "recall-at-1", "mrr", "ndcg-at-10", "n"]
    assert dev[-1]["mrr"] > dev[0]["mrr"]
    best = [record["dev"]["match"] for record in records if record.get("best")][-1]
    assert model.evaluate().scores["match"] == pytest.approx(best)
    assert model.evaluate("train").scores["match"]["n"] == 60, "two texts are scored, without the negatives"
    (answer,) = model.predict("match", ["a cat warm"], ["the cat sees warm"])
    one, two = model.embed(["a cat warm", "the cat sees warm"], "match")
    assert answer.score == pytest.approx(one @ two / np.linalg.norm(one) / np.linalg.norm(two), abs=1e-5)
    assert answer.label is None
    assert answer.probabilities is None
    assert "recall@10" in (tmp_path / "run" / "report.html").read_text()
    frame = model.predict_frame({"text": ["a cat"], "text2": ["the cat"]}, ["match"])
    assert list(frame.columns) == ["text", "text2", "match"]


def test_rows_of_one_file_are_split_with_their_negatives(tiny: Path, tmp_path: Path) -> None:
    data = write_triples(tmp_path)
    del data["dev"]
    tasks = {"match": {"kind": "matches", "data": data | {"dev_fraction": 0.3}}}
    task = assemble(parse_recipe(recipe_content(tiny, tasks=tasks), "t"), device="cpu").data["match"]
    assert len(task.train) + len(task.dev) == 60
    assert [len(side.sequences(0)) for side in (task.train, task.dev)] == [3, 2]
    assert not set(task.train.rows) & set(task.dev.rows)


def test_equal_texts_have_equal_numbers(tiny: Path, tmp_path: Path) -> None:
    rows = [("A cat", "the dog"), ("the dog", "a  CAT"), ("a horse", "the dog")]
    path = write_rows(tmp_path / "rows.tsv", [{"text": one, "text2": two} for one, two in rows])
    tasks = {"match": {"kind": "matches", "data": {"train": str(path), "dev": str(path), "text2": "text2"}}}
    train = assemble(parse_recipe(recipe_content(tiny, tasks=tasks), "t"), device="cpu").data["match"].train
    (a, b), (c, d), (e, f) = train.targets.tolist()
    assert (a, b) == (d, c)
    assert f == b
    assert len({a, b, e}) == 3


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({"reading": "cross"}, 'matches compare the vectors of two texts; expected "bi"'),
        ({"data": {"text": "a", "text2": "b", "label": "dup"}}, "matches have no labels; leave it out"),
        ({"data": {"text": "a", "text2": "b", "label_map": {"a": "b"}}}, "there is no label column"),
        ({"head": "linear"}, r"tasks.m.loss: 'in-batch-negatives' expects unit vectors \(head = \"vectors\"\)"),
        ({"head": "cosine"}, "tasks.m.head: found 'cosine', but the loss 'in-batch-negatives' needs head = "),
        ({"loss": "mse"}, "'mse' is for a regression, but the task is a matches"),
        ({"loss": "cosent"}, "'cosent' is for a regression, but the task is a matches"),
        ({"labels": ["a", "b"]}, "`labels` describes labels, but matches have none"),
        ({"range": [0, 1]}, "`range` describes labels, but matches have none"),
        ({"class_weights": "balanced"}, "is for tasks with one class per row"),
        ({"positive": "yes"}, "is for two classes"),
        ({"metrics": ["accuracy"]}, "found 'accuracy', expected some of recall-at-1"),
    ],
)
def test_meaningless_combinations_are_rejected(tiny: Path, task: dict[str, Any], message: str) -> None:
    own = matches_task(tiny, **task)
    own["data"] = {**files(tiny, "paraphrase"), **own["data"]}
    with pytest.raises(UserError, match=message):
        assemble(parse_recipe(recipe_content(tiny, tasks={"m": own}), "t"), device="cpu")


def test_other_kinds_reject_what_is_for_matches(tiny: Path) -> None:
    content = recipe_content(tiny)
    similarity = content["tasks"]["similarity"]
    cases = [
        ({"data": similarity["data"] | {"negative": "c"}}, '`data.negative` needs kind = "matches"'),
        ({"data": similarity["data"] | {"label": []}}, 'kind = "regression" needs a label column'),
        ({"loss": "in-batch-negatives", "head": "vectors"}, "'in-batch-negatives' is for matches"),
        ({"head": "vectors"}, "'mse' needs a head with numbers as outputs"),
        ({"head": "cosine", "loss": "angle"}, 'needs head = "vectors"'),
        ({"loss": "cosent"}, "expects a cosine"),
    ]
    for change, message in cases:
        content["tasks"] = {"s": similarity | change}
        with pytest.raises(UserError, match=message):
            assemble(parse_recipe(content, "t"), device="cpu")


@pytest.mark.parametrize("loss", [{"head": "cosine", "loss": "cosent"}, {"head": "vectors", "loss": "angle"}])
def test_graded_pairs_are_a_regression(tiny: Path, tmp_path: Path, loss: dict[str, str]) -> None:
    content = recipe_content(tiny, epochs=1)
    content["tasks"] = {"similarity": content["tasks"]["similarity"] | loss}
    model = weft.train(content, tmp_path / "run", device="cpu", progress=False)
    assert 0 <= model.predict("similarity", "the cat sees", "a cat").score <= 5


def steps_of(tiny: Path, **changes: Any) -> list[dict[str, float]]:
    """The losses of three steps, and the norm of their gradients."""
    content = recipe_content(tiny, epochs=3, **changes)
    content["tasks"]["match"] = matches_task(tiny)
    if content.get("weighting") == "fixed":
        content["weighting"] = {"name": "fixed", "weights": dict.fromkeys(content["tasks"], 0.5)}
    if content.get("weighting") == "dwa":
        content["weighting"] = {"name": "dwa", "every": 1}
    made = assemble(parse_recipe(content, "t"), device="cpu")
    windows = [made.plan.window(step) for step in range(made.plan.steps)]
    own = [window for window in windows if "match" in window.tasks][:3]
    made.network.train()
    return [made.step(window, 1e-4).losses | {"tasks": len(window.tasks)} for window in own]


@pytest.mark.parametrize("schedule", variants(ScheduleConfig))
def test_every_schedule_feeds_matches(tiny: Path, schedule: str) -> None:
    assert all(losses["match"] > 0 for losses in steps_of(tiny, schedule=schedule))


@pytest.mark.parametrize("weighting", variants(WeightingConfig))
def test_every_weighting_weighs_matches(tiny: Path, weighting: str) -> None:
    assert all(losses["match"] > 0 for losses in steps_of(tiny, weighting=weighting))


@pytest.mark.parametrize("surgery", variants(SurgeryConfig))
def test_every_surgery_sees_the_same_negatives(tiny: Path, surgery: str) -> None:
    """The negatives are those of the forward pass, whether tasks share it or not: without dropout equal losses."""
    still = {"dropout": 0.0, "body_dropout": 0.0}
    joint, apart = (steps_of(tiny, surgery=name, **still)[0] for name in ("none", surgery))
    assert apart["match"] == pytest.approx(joint["match"], rel=1e-5)


@pytest.mark.parametrize("regularizer", ["smart", "r-drop"])
def test_regularizers_compare_similarities(tiny: Path, regularizer: str) -> None:
    tasks = {"m": matches_task(tiny, regularizer=regularizer)}
    made = assemble(parse_recipe(recipe_content(tiny, tasks=tasks), "t"), device="cpu")
    made.network.train()
    assert made.step(made.plan.window(0), 1e-4).terms["m"] > 0


def test_accumulated_batches_do_not_share_negatives(tiny: Path) -> None:
    """The loss of a window is the mean over its forward passes, each with its own negatives."""
    still = {"dropout": 0.0, "body_dropout": 0.0, "tasks": {"m": matches_task(tiny)}}
    apart = assemble(parse_recipe(recipe_content(tiny, **still), "t"), device="cpu")
    rows = [apart.plan.window(step).parts[0].rows for step in (0, 1)]
    network = apart.network
    with torch.no_grad():
        each = []
        for own in rows:
            batch = apart.data["m"].train.batch(own)
            each.append(network.task("m").losses(network([batch])[0], batch.target))
    accumulated = assemble(
        parse_recipe(recipe_content(tiny, **still) | {"optimizer": {"lr": 1e-3, "accumulate": 2}}, "t"), device="cpu"
    )
    losses = accumulated.step(accumulated.plan.window(0), 0.0).losses
    assert losses["m"] == pytest.approx(float(torch.cat(each).mean()), rel=1e-5)


def test_a_resumed_run_has_the_same_weights(tiny: Path, tmp_path: Path) -> None:
    tasks = {"m": matches_task(tiny, loss={"name": "in-batch-negatives", "symmetric": True})}
    recipe = parse_recipe(recipe_content(tiny, epochs=2, tasks=tasks), "t")
    train_run(recipe, tmp_path / "whole", Quiet(), device="cpu")
    steps: list[int] = []

    class Stops(Quiet):
        def stepped(self, step: int, *_: Any) -> None:
            steps.append(step)
            if len(steps) == 5:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_run(recipe, tmp_path / "halved", Stops(), device="cpu")
    train_run(recipe, tmp_path / "halved", Quiet(), device="cpu", resume=True)
    one, two = (load_file(tmp_path / run / "model" / "model.safetensors") for run in ("whole", "halved"))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_the_normalized_weighting_knows_the_loss_of_a_constant(tiny: Path) -> None:
    """Equal vectors give log(candidates)."""
    content = recipe_content(tiny, weighting="normalized")
    content["tasks"]["match"] = matches_task(tiny)
    made = assemble(parse_recipe(content, "t"), device="cpu")
    slopes = made.step.weighting.slopes(("match",), torch.zeros(1))
    assert float(slopes) > 0
    assert 1 / float(slopes) <= np.log(8) + 1e-6
