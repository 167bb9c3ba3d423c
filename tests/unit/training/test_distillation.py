"""Distillation: stored predictions, the loss, exact resume and what is rejected."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.fingerprint import fingerprint
from tests.tiny import files, recipe, recipe_content, write_body, write_recipe, write_rows
from tests.unit.training.test_averaging import Dying, Killed
from tests.unit.training.test_selection import Silent
from weft.build import assemble
from weft.foundation.errors import UserError
from weft.inference.evaluate import predict_rows
from weft.inference.model import load
from weft.recipes.check import examine
from weft.recipes.recipe import load_recipe, parse_recipe
from weft.run import train_run
from weft.runs.model_folder import read_model
from weft.training.distillation import Distillation, DistillConfig

STEPS = 6


@pytest.fixture(scope="module")
def teachers(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two teachers: one of all tasks, and one of two tasks with another body, readings and order of tasks."""
    folder = tmp_path_factory.mktemp("teachers")
    train_run(recipe(tiny), folder / "all", Silent(), steps=8, device="cpu")
    content = recipe_content(tiny, body=str(write_body(folder / "wide", width=24)), seed=3, max_length=16)
    content["tasks"] = {name: content["tasks"][name] for name in ("similarity", "paraphrase")}
    content["tasks"]["similarity"] |= {"reading": "cross", "pooling": "cls", "scale": False}
    train_run(parse_recipe(content, "pairs"), folder / "pairs", Silent(), steps=8, device="cpu")
    return [folder / "all", folder / "pairs"]


def student(tiny: Path, teachers: list[Path], **distill: Any) -> dict[str, Any]:
    return recipe_content(tiny, distill={"teachers": [str(one) for one in teachers], **distill})


def own_cache(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[Path]:
    monkeypatch.setenv("WEFT_CACHE", str(folder))
    return sorted(folder.glob("teachers/*.npy"))


def test_stored_predictions_equal_those_computed_again(
    tiny: Path, teachers: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_cache(monkeypatch, tmp_path)
    made = assemble(parse_recipe(student(tiny, teachers), "test"), device="cpu")
    assert not own_cache(monkeypatch, tmp_path), "a check computes nothing"
    for name, task in made.data.items():
        batch = task.fed.batch(np.arange(len(task.fed)))
        assert batch.teacher is not None
        own = [load(folder, "cpu") for folder in (teachers if name != "sentiment" else teachers[:1])]
        wanted = []
        for model in own:
            rows = [task.train.texts(row) for row in range(len(task.train))]
            sides = list(zip(*rows, strict=True))
            answers = model.predict(name, list(sides[0]), list(sides[1]) if len(sides) > 1 else None)
            if name == "similarity":
                wanted.append([answer.score / 5 for answer in answers])  # the labels go from 0 to 5
            else:
                assert answers[0].probabilities is not None
                wanted.append([list((answer.probabilities or {}).values()) for answer in answers])
        mean = np.mean(wanted, axis=0)[batch.rows]
        np.testing.assert_allclose(batch.teacher.numpy(), mean, atol=1e-6)
        # bit by bit: what is stored is what the teacher predicts
        model, stored = own[0], made.lessons[name].stored[0]
        again_rows = made.lessons[name]._as_read_by(made.lessons[name].teachers[0])
        assert stored.tobytes() == predict_rows(model.engine, again_rows).tobytes()
        assert isinstance(stored, np.memmap)


def test_a_damaged_file_is_computed_again_and_others_are_reused(
    tiny: Path, teachers: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def predictions() -> bytes:
        made = assemble(parse_recipe(student(tiny, teachers[:1]), "test"), device="cpu")
        return b"".join(lesson.stored[0].tobytes() for lesson in made.lessons.values())

    own_cache(monkeypatch, tmp_path)
    first = predictions()
    stored = own_cache(monkeypatch, tmp_path)
    assert len(stored) == 3
    assert {path.stat().st_mode & 0o777 for path in stored} == {0o600}
    times = [path.stat().st_mtime_ns for path in stored]
    stored[1].write_bytes(stored[1].read_bytes()[:-8] + bytes(8))
    os.utime(stored[1], ns=(times[1], times[1]))
    assert predictions() == first
    changed = [path.stat().st_mtime_ns != before for path, before in zip(stored, times, strict=True)]
    assert changed == [False, True, False]


def test_resumes_exactly_and_rejects_another_teacher(
    tiny: Path, teachers: list[Path], tmp_path: Path, few_resamples: None
) -> None:
    copied = tmp_path / "teacher"
    shutil.copytree(teachers[0], copied)
    made = parse_recipe(student(tiny, [copied, teachers[1]], anneal=True) | {"average": "ema"}, "test")
    train_run(made, tmp_path / "straight", Silent(), steps=STEPS, device="cpu")
    with pytest.raises(Killed):
        train_run(made, tmp_path / "killed", Dying(5), steps=STEPS, device="cpu")
    shutil.rmtree(copied)
    shutil.copytree(teachers[1], copied)
    with pytest.raises(UserError, match=r"was started with another recipe \(teachers\."):
        train_run(made, tmp_path / "killed", Silent(), steps=STEPS, device="cpu", resume=True)
    shutil.rmtree(copied)
    shutil.copytree(teachers[0], copied)
    train_run(made, tmp_path / "killed", Silent(), steps=STEPS, device="cpu", resume=True)
    assert fingerprint(tmp_path / "killed") == fingerprint(tmp_path / "straight")
    card = (tmp_path / "straight" / "model" / "README.md").read_text()
    assert 'teachers = ["teacher", "pairs"]' in card
    assert str(tmp_path) not in card


def test_the_loss_of_a_step_is_the_weighted_sum(tiny: Path, teachers: list[Path]) -> None:
    """Weight 0.25: three quarters of the label loss and a quarter of the soft cross-entropy, written out here."""
    content = student(tiny, teachers[:1], weight=0.25, temperature=3.0) | {"dropout": 0.0, "body_dropout": 0.0}
    made = assemble(parse_recipe(content, "test"), device="cpu")
    window = made.plan.window(0)
    wanted = {}
    for part in window.parts:
        batch = made.data[part.task].fed.batch(part.rows)
        output = made.network([batch])[0].double()
        assert batch.teacher is not None
        label = made.network.task(part.task).losses(output, batch.target)
        if part.task == "similarity":
            soft = (output[:, 0] - batch.teacher) ** 2
        else:
            theirs = torch.softmax(batch.teacher.log() / 3.0, dim=1)
            soft = 9.0 * -(theirs * torch.log_softmax(output / 3.0, dim=1)).sum(dim=1)
        wanted[part.task] = float((0.75 * label + 0.25 * soft).mean().detach())
    report = made.step(window, 0.0)
    assert report.losses == pytest.approx(wanted, abs=1e-5)


def test_weight_and_annealing() -> None:
    constant = Distillation(DistillConfig(teachers=("a",)), 10)
    falling = Distillation(DistillConfig(teachers=("a",), anneal=True), 10)
    half = Distillation(DistillConfig(teachers=("a",), anneal=True, weight=0.5), 4)
    assert [constant.weight(step, "a") for step in (0, 5, 9)] == [0.5, 0.5, 0.5]
    assert [falling.weight(step, "a") for step in (0, 5, 9)] == pytest.approx([1.0, 0.5, 0.1])
    assert [half.weight(step, "a") for step in range(4)] == pytest.approx([0.5, 0.375, 0.25, 0.125])
    unlabelled = Distillation(DistillConfig(teachers=("a",), anneal=True), 10, frozenset({"a"}))
    assert [unlabelled.weight(9, task) for task in ("a", "b")] == pytest.approx([1.0, 0.1])


def test_what_is_rejected(tiny: Path, teachers: list[Path], tmp_path: Path) -> None:
    def made(content: dict[str, Any]) -> None:
        assemble(parse_recipe(content, "test"), device="cpu")

    content = student(tiny, teachers[1:])
    content["tasks"] = {"sentiment": content["tasks"]["sentiment"]}
    with pytest.raises(UserError, match=r"distill.teachers: .*pairs has the tasks similarity, paraphrase and none of"):
        made(content)
    content = student(tiny, teachers[:1])
    content["tasks"]["sentiment"]["labels"] = ["good", "bad"]
    with pytest.raises(UserError, match=r"predicts one of bad, good \(classification\) in the task 'sentiment', but"):
        made(content)
    content = student(tiny, teachers[:1])
    content["tasks"]["sentiment"]["kind"] = "ordinal"
    with pytest.raises(UserError, match=r"but the recipe has one of bad, good \(ordinal\)"):
        made(content)
    content = student(tiny, teachers[:1])
    rows = [{"text": f"a {word} film", "label": word} for word in ("bad", "good")]
    write_rows(tmp_path / "pairs.tsv", [{**row, "b": "the dog"} for row in rows])
    pair = {"train": str(tmp_path / "pairs.tsv"), "dev": str(tmp_path / "pairs.tsv"), "text2": "b"}
    content["tasks"]["sentiment"] |= {"reading": "cross", "data": pair}
    with pytest.raises(UserError, match=r"reads one text per row in the task 'sentiment', but the recipe two texts"):
        made(content)
    with pytest.raises(UserError, match=r"distill.teachers: .*nowhere: is not a weft model"):
        made(student(tiny, [tmp_path / "nowhere"]))
    with pytest.raises(UserError, match="distill.teachers: .* expected every teacher once"):
        made(student(tiny, [teachers[0], teachers[0]]))


def test_a_task_without_a_teacher_is_noted(tiny: Path, teachers: list[Path]) -> None:
    made = assemble(parse_recipe(student(tiny, teachers[1:]), "test"), device="cpu")
    assert "sentiment: has no teacher and learns from its labels alone" in made.notes
    assert made.data["sentiment"].fed.batch(np.arange(2)).teacher is None
    assert set(made.lessons) == {"paraphrase", "similarity"}


def test_a_teacher_that_saw_the_dev_rows_is_noted(tiny: Path, teachers: list[Path]) -> None:
    content = student(tiny, teachers[:1]) | {"seed": 5}
    content["tasks"]["sentiment"]["data"] = {"train": files(tiny, "sentiment")["train"], "dev_fraction": 0.3}
    notes = assemble(parse_recipe(content, "test"), device="cpu").notes
    assert any("was probably trained on some of this run's dev rows" in note for note in notes)


def test_paths_are_relative_to_the_recipe(tiny: Path, tmp_path: Path) -> None:
    path = write_recipe(tmp_path, recipe_content(tiny, distill={"teachers": ["runs/one", "/two"]}))
    assert load_recipe(path).distill == DistillConfig(teachers=(str(tmp_path / "runs" / "one"), "/two"))


def test_texts_without_labels(tiny: Path, teachers: list[Path], tmp_path: Path, few_resamples: None) -> None:
    """They come after the labelled rows, with the teacher's predictions and without a loss on their placeholders."""
    further = [f"a {word} film" for word in ("lovely", "cold", "grey", "warm", "tender", "dull", "bright")]
    path = write_rows(tmp_path / "more.tsv", [{"id": i, "text": text} for i, text in enumerate(further)])
    content = student(tiny, teachers[:1], weight=0.25, temperature=1.0)
    content["tasks"] = {"sentiment": content["tasks"]["sentiment"] | {"batch_size": 40}}
    content["tasks"]["sentiment"]["data"] = content["tasks"]["sentiment"]["data"] | {"unlabelled": str(path)}
    content |= {"dropout": 0.0, "body_dropout": 0.0}
    made = assemble(parse_recipe(content, "test"), device="cpu")
    task = made.data["sentiment"]
    assert (len(task.train), len(task.fed)) == (26, 33)
    batch = task.fed.batch(np.arange(33))
    assert batch.labelled is not None
    assert batch.teacher is not None
    without = batch.rows >= 26
    assert batch.labelled.tolist() == (~without).tolist()
    predicted = load(teachers[0], "cpu").predict("sentiment", further)
    by_row = {26 + number: list((one.probabilities or {}).values()) for number, one in enumerate(predicted)}
    for row, answer in zip(batch.rows[without], batch.teacher[torch.from_numpy(without)], strict=True):
        assert answer.tolist() == pytest.approx(by_row[int(row)], abs=1e-6)
        assert task.fed.texts(int(row)) == [further[int(row) - 26]]
    window = made.plan.window(0)
    assert window.count("sentiment") == 33
    output = made.network([batch])[0].detach()
    label = torch.nn.functional.cross_entropy(output, batch.target, reduction="none")
    soft = -(batch.teacher.float() * output.log_softmax(1)).sum(1)
    wanted = float((torch.where(torch.from_numpy(without), 0.0, 0.75 * label) + 0.25 * soft).mean())
    assert made.step(window, 0.0).losses["sentiment"] == pytest.approx(wanted, abs=1e-5)
    result = train_run(parse_recipe(content, "test"), tmp_path / "run", Silent(), steps=2, device="cpu")
    assert result is not None
    assert 'unlabelled = "more.tsv"' in (tmp_path / "run" / "model" / "README.md").read_text()
    del content["distill"]
    with pytest.raises(UserError, match=r"tasks.sentiment.data.unlabelled: no teacher predicts these rows"):
        assemble(parse_recipe(content, "test"), device="cpu")


def without_train(tiny: Path, teachers: list[Path], folder: Path, **distill: Any) -> dict[str, Any]:
    """Three tasks of which two have texts without labels, and no train file."""
    content = student(tiny, teachers[:1], **distill) | {"dropout": 0.0, "body_dropout": 0.0}
    rows = [{"text": f"a {word} film"} for word in ("lovely", "cold", "grey", "warm", "tender")]
    pairs = [{"a": f"the {one}", "b": f"a {two}"} for one in ("cat", "dog") for two in ("cat", "trout")]
    for task, own in (("sentiment", rows), ("similarity", pairs)):
        data = content["tasks"][task]["data"]
        del data["train"]
        data["unlabelled"] = str(write_rows(folder / f"{task}.tsv", own))
    return content


def test_a_task_without_train_rows_learns_from_its_teacher_alone(
    tiny: Path, teachers: list[Path], tmp_path: Path, few_resamples: None
) -> None:
    """Its labels are the teacher's, and its loss has no label loss, whatever `weight` says."""
    content = without_train(tiny, teachers, tmp_path, temperature=1.0, anneal=True)
    content["tasks"]["similarity"] |= {"head": "cosine", "loss": "cosent"}  # compares the labels of a batch
    train_run(parse_recipe(content, "test"), tmp_path / "run", Silent(), steps=2, device="cpu")
    assert "| sentiment | classification | single | 0 (5 without labels) |" in (
        tmp_path / "run" / "model" / "README.md"
    ).read_text(encoding="utf-8")
    log = (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert set(json.loads(log[-1])["train"]) == {"paraphrase"}, "only rows with labels are scored"
    content["tasks"]["similarity"] |= {"head": "linear", "loss": "mse"}
    made = assemble(parse_recipe(content, "test"), device="cpu")
    own = read_model(teachers[0] / "model").labels
    assert {name: task.labels for name, task in made.data.items()} == own
    assert [(len(task.train), len(task.fed)) for task in made.data.values()] == [(0, 5), (34, 34), (0, 4)]
    window = made.plan.window(0)
    wanted = {}
    for part in window.parts:
        batch = made.data[part.task].fed.batch(part.rows)
        assert batch.teacher is not None
        output = made.network([batch])[0].detach()
        soft = -(batch.teacher.float() * output.log_softmax(1)).sum(1)
        wanted[part.task] = float((soft if part.task != "similarity" else (output[:, 0] - batch.teacher) ** 2).mean())
    losses = made.step(window, 0.0).losses
    assert losses == pytest.approx(wanted, abs=1e-5)  # annealing starts with the teacher alone
    later = replace(made.plan.window(1), step=made.plan.steps - 1)
    with_labels = made.step(later, 0.0).losses["paraphrase"]
    alone = made.data["sentiment"].fed.batch(later.parts[0].rows)
    assert alone.teacher is not None
    output = made.network([alone])[0].detach()
    soft = float(-(alone.teacher.float() * output.log_softmax(1)).sum(1).mean())
    assert made.step(later, 0.0).losses["sentiment"] == pytest.approx(soft, abs=1e-5), "it does not anneal"
    assert with_labels > 0
    facts = [(own.task, own.split) for own in examine(made).splits]
    assert facts == [("sentiment", "dev"), ("paraphrase", "train"), ("paraphrase", "dev"), ("similarity", "dev")]


def test_a_run_without_train_rows_resumes_exactly(
    tiny: Path, teachers: list[Path], tmp_path: Path, few_resamples: None
) -> None:
    made = parse_recipe(without_train(tiny, teachers, tmp_path), "test")
    train_run(made, tmp_path / "straight", Silent(), steps=STEPS, device="cpu")
    with pytest.raises(Killed):
        train_run(made, tmp_path / "killed", Dying(5), steps=STEPS, device="cpu")
    train_run(made, tmp_path / "killed", Silent(), steps=STEPS, device="cpu", resume=True)
    assert fingerprint(tmp_path / "killed") == fingerprint(tmp_path / "straight")


def test_what_a_task_without_train_rows_needs(tiny: Path, teachers: list[Path], tmp_path: Path) -> None:
    content = without_train(tiny, teachers, tmp_path)
    del content["tasks"]["sentiment"]["data"]["unlabelled"]
    with pytest.raises(UserError, match=r"tasks.sentiment.data.train: is missing; name the file, or texts without"):
        assemble(parse_recipe(content, "test"), device="cpu")
    others = {"schedule": {"name": "batch-round-robin", "tasks": ["paraphrase", "similarity"]}}
    assert "sentiment" in assemble(parse_recipe(content | others, "test"), device="cpu").untrained
    content = without_train(tiny, teachers, tmp_path)
    content["tasks"]["sentiment"]["labels"] = ["good", "bad"]
    with pytest.raises(UserError, match=r"predicts one of bad, good \(classification\) in the task 'sentiment', but"):
        assemble(parse_recipe(content, "test"), device="cpu")
    del content["distill"]
    with pytest.raises(UserError, match="no teacher predicts these rows"):
        assemble(parse_recipe(content, "test"), device="cpu")


def test_held_out_rows_stay_the_dev_rows_without_a_train_file(tiny: Path) -> None:
    file = files(tiny, "sentiment")["train"]
    content = recipe_content(tiny)
    content["tasks"]["sentiment"]["data"] = {"train": file, "dev_fraction": 0.3}
    before = assemble(parse_recipe(content, "test"), device="cpu").data["sentiment"].dev
    content["tasks"]["sentiment"]["data"] = {"dev": file, "dev_fraction": 0.3}
    others = {"schedule": {"name": "batch-round-robin", "tasks": ["paraphrase"]}}
    after = assemble(parse_recipe(content | others, "test"), device="cpu").data["sentiment"].dev
    assert after.rows.tolist() == before.rows.tolist()
    assert 0 < len(after) < len(after.file)
