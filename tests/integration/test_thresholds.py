"""Tuned thresholds through a real run: cross-fitted scores, and the same decisions wherever the model answers."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn import metrics as sk

import weft
from tests.integration.command import weft as command
from tests.tiny import BAD, GOOD, WORDS, recipe_content, write_recipe, write_rows
from weft.runs.reader import read_run

TOPICS = {"price": "cheap", "quality": "solid", "service": "kind"}


def write_texts(path: Path, rows: int) -> Path:
    """One text in five is good, and a third of them has a topic; a label in nine is wrong."""
    draw = np.random.default_rng(len(path.name) + rows)
    found = []
    for _ in range(rows):
        good, chosen = draw.random() < 0.2, [topic for topic in TOPICS if draw.random() < 0.3]
        words = [str(draw.choice(GOOD if good else BAD)), *(TOPICS[t] for t in chosen), *draw.choice(WORDS, 2)]
        wrong = draw.random() < 0.1
        mood = ("bad" if good else "good") if wrong else ("good" if good else "bad")
        found.append({"text": " ".join(words), "mood": mood, "topics": "|".join(chosen[:-1] if wrong else chosen)})
    return write_rows(path, found)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, tiny: Path) -> Path:
    folder = tmp_path_factory.mktemp("thresholds")
    files = {split: str(write_texts(folder / f"{split}.tsv", n)) for split, n in (("train", 120), ("dev", 90))}
    write_texts(folder / "other.tsv", 70)
    common: dict[str, Any] = {"batch_size": 16, "thresholds": "tuned", "pooling": "mean"}
    content = recipe_content(tiny, epochs=4, calibrate=True)
    content["tasks"] = {
        "mood": common
        | {"kind": "classification", "data": files | {"label": "mood"}, "positive": "good"}
        | {"metrics": ["f1-positive", "accuracy"]},
        "topics": common
        | {"kind": "multilabel", "data": files | {"label": "topics"}, "metrics": ["f1", "f1-micro"]}
        | {"loss": {"name": "binary-cross-entropy", "pos_weight": "balanced"}},
    }
    content["optimizer"] = {"lr": 3e-3}
    done = command("train", write_recipe(folder, content), "-o", folder / "run")
    assert "overall = " in done.stdout
    return folder / "run"


def settings(run: Path) -> dict[str, Any]:
    return dict(json.loads((run / "model" / "weft.json").read_text(encoding="utf-8")))


def result(run: Path) -> dict[str, Any]:
    return dict(json.loads((run / "result.json").read_text(encoding="utf-8")))


def test_reported_scores_are_cross_fitted_and_saved_thresholds_naive(run: Path) -> None:
    found, saved = result(run), settings(run)["labels"]
    table = pq.read_table(run / "predictions" / "mood.parquet").to_pydict()
    true = np.array(table["label"]) == "good"
    crossed = sk.f1_score(true, np.array(table["prediction"]) == "good")
    assert found["dev"]["mood"]["f1-positive"] == pytest.approx(crossed)
    p = np.array(table["p_good"])
    cut = saved["mood"]["thresholds"][0]
    assert found["thresholds"]["mood"]["at"] == {"good": cut}
    assert found["thresholds"]["mood"]["naive"]["f1-positive"] == pytest.approx(sk.f1_score(true, p > cut))
    assert found["thresholds"]["mood"]["default"]["f1-positive"] == pytest.approx(sk.f1_score(true, p > 0.5))
    assert found["thresholds"]["mood"]["naive"]["f1-positive"] == pytest.approx(
        max(sk.f1_score(true, p > t) for t in p)
    )
    topics = found["thresholds"]["topics"]
    assert list(topics["at"]) == ["price", "quality", "service"]
    assert list(topics["at"].values()) == saved["topics"]["thresholds"]
    assert topics["naive"]["f1"] >= found["dev"]["topics"]["f1"]
    assert topics["naive"]["f1"] > topics["default"]["f1"]


def test_evaluation_uses_the_saved_thresholds(run: Path) -> None:
    """On dev that is the naive score, which is said; on other files nothing is tuned."""
    done = command("evaluate", run, "--json")
    again = json.loads(done.stdout)
    assert "note: the thresholds of mood, topics were tuned on the dev rows" in done.stderr
    for task in ("mood", "topics"):
        naive = result(run)["thresholds"][task]["naive"]
        assert again["tasks"][task] == pytest.approx(naive | {"n": 90})
    other = run.parent / "other.tsv"
    done = command("evaluate", run, "--file", f"mood={other}", "--json")
    assert "note" not in done.stderr
    texts, labels = zip(*((row["text"], row["mood"]) for row in rows_of(other)), strict=True)
    answers = [answer.label for answer in weft.load(run).predict("mood", list(texts))]
    expected = sk.f1_score([y == "good" for y in labels], [y == "good" for y in answers])
    assert json.loads(done.stdout)["tasks"]["mood"]["f1-positive"] == pytest.approx(expected)


def rows_of(path: Path) -> list[dict[str, str]]:
    header, *lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return [dict(zip(header, line, strict=True)) for line in lines]


def test_every_engine_decides_alike(run: Path, tmp_path: Path) -> None:
    """Answers of the model and of its ONNX export are those of the thresholds, also for calibrated probabilities."""
    texts = [row["text"] for row in rows_of(run.parent / "other.tsv")]
    model, content = weft.load(run), settings(run)
    assert set(content["temperatures"]) == {"mood", "topics"}
    command("export", run, "--to", "onnx", "-o", tmp_path / "onnx")
    exported = weft.load(tmp_path / "onnx")
    different = 0
    for task in ("mood", "topics"):
        labels = model.labels[task]
        raw = model.engine.answers(task, model.rows(task, texts))
        cuts = np.array(content["labels"][task]["thresholds"])
        expected = labels.kind.cells(labels.kind.decide(raw, cuts), labels.names)
        answers = model.predict(task, texts)
        assert [answer.label for answer in answers] == expected
        assert [answer.label for answer in exported.predict(task, texts)] == expected
        different += int((labels.kind.decide(raw) != labels.kind.decide(raw, cuts)).sum())
        assert all(answer.probabilities is not None for answer in answers)
        if task == "mood":
            assert all(answer.score == (answer.probabilities or {})[str(answer.label)] for answer in answers)
    assert different > 0, "the thresholds change some decisions, else this test shows nothing"


def test_the_card_and_the_report_show_the_thresholds(run: Path) -> None:
    card = (run / "model" / "README.md").read_text(encoding="utf-8")
    model = weft.load(run)
    for task in ("mood", "topics"):
        labels = model.labels[task].tempered(model.temperatures[task])
        assert labels.thresholds is not None
        for name, cut in zip(labels.kind.decisions(labels.names), labels.thresholds, strict=True):
            assert f"| {task} | {name} | {cut:.3f} |" in card
    task = read_run(run).tasks["topics"]
    assert task.thresholds.tolist() == settings(run)["labels"]["topics"]["thresholds"]
    page = (run / "report.html").read_text(encoding="utf-8")
    shown = dict(re.findall(r'data-key="([^"]+)">([^<]+)<', page))
    for name in ("mood", "topics"):
        own = result(run)["thresholds"][name]
        for metric, value in own["naive"].items():
            assert shown[f"{name}/tuning/{metric}/naive"] == f"{value:.3f}"
            assert shown[f"{name}/tuning/{metric}/default"] == f"{own['default'][metric]:.3f}"
            assert shown[f"{name}/tuning/{metric}/cross-fitted"] == f"{result(run)['dev'][name][metric]:.3f}"
    assert shown["topics/class/2/threshold"] == f"{task.thresholds[2]:.3f}"
    assert "Precision and recall" in page


def test_a_damaged_threshold_is_rejected(run: Path) -> None:
    labels = weft.load(run).labels["topics"]
    for cuts in ((0.5,), (0.5, 0.5, 1.5), (0.5, 0.5, float("nan"))):
        assert not type(labels)(labels.kind, labels.names, thresholds=cuts).fits("multilabel")


def test_check_says_what_cannot_be_tuned(tiny: Path, tmp_path: Path) -> None:
    for task, code, message in (
        (
            "similarity",
            2,
            '"tuned" is for multilabel and two classes, but the task has regression labels; leave it out',
        ),
        ("sentiment", 0, "good: fewer than 10 dev rows with the label or without it; the threshold stays 0.5"),
    ):
        content = recipe_content(tiny)
        content["tasks"] = {task: content["tasks"][task] | {"thresholds": "tuned"}}
        done = command("check", write_recipe(tmp_path, content), code=code)
        assert f"tasks.{task}.thresholds: {message}" in " ".join((done.stdout + done.stderr).split())
