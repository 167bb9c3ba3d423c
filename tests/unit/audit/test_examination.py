"""The audit of small tables with planted problems."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests import tagged
from tests.texts import WORDS
from tests.tiny import BAD, GOOD, matches_task, recipe, write_rows
from weft.audit.examination import audit
from weft.audit.features import row_features
from weft.audit.findings import (
    CONFLICT,
    DUPLICATE,
    LABEL_ERROR,
    LEAK,
    LENGTH,
    NEAR_DUPLICATE,
    NEAR_LEAK,
    SCRIPT,
    AuditReport,
)
from weft.audit.label_errors import FOLDS, deal_folds
from weft.build import assemble
from weft.recipes.assembly import Assembly

LONG = "the quiet harbour woke before dawn and the gulls argued over bread"


def made(tiny: Path, tasks: dict[str, Any]) -> Assembly:
    return assemble(recipe(tiny, tasks=tasks), device="cpu")


def run(one: Assembly) -> AuditReport:
    return audit(one.data, one.network.body, torch.device("cpu"), seed=1)


def lines(report: AuditReport, finding: str) -> set[tuple[str, int]]:
    return {(row.split, row.line) for row in report.findings if row.finding == finding}


@pytest.fixture
def shop(tiny: Path, tmp_path: Path) -> Assembly:
    plain = [{"text": f"a {word} film with {other} and much {last}", "label": label, "stars": stars}
             for label, stars, words in (("good", 5, GOOD), ("bad", 1, BAD))
             for word in words for other, last in zip(WORDS[:4], WORDS[4:8], strict=True)]  # fmt: skip
    planted = [
        {"text": LONG, "label": "good", "stars": 5},  # line 42
        {"text": f"  {LONG.upper()}", "label": "bad", "stars": 5},
        {"text": LONG.replace("bread", "breed"), "label": "good", "stars": 5},
        {"text": "тихая гавань", "label": "bad", "stars": 1},
        {"text": "so " * 60, "label": "bad", "stars": 1},  # line 46
    ]
    dev = [
        {"text": LONG.title(), "label": "good", "stars": 5},
        {"text": LONG.replace("gulls", "gull"), "label": "good", "stars": 5},
        {"text": "something else entirely happened here", "label": "bad", "stars": 1},
    ]
    data = {
        "train": str(write_rows(tmp_path / "train.tsv", plain + planted)),
        "dev": str(write_rows(tmp_path / "dev.tsv", dev)),
    }
    tasks = {
        "mood": {"kind": "classification", "data": data},
        "stars": {"kind": "ordinal", "data": {**data, "label": "stars"}},
    }
    return made(tiny, tasks)


def test_planted_problems_are_found(shop: Assembly) -> None:
    report = run(shop)
    mood = AuditReport(report.tasks[:1], [])
    assert lines(mood, DUPLICATE) == {("train", 43)}
    assert lines(mood, NEAR_DUPLICATE) >= {("train", 44)}
    assert lines(mood, LEAK) == {("dev", 2)}
    assert ("dev", 3) in lines(mood, NEAR_LEAK)
    assert lines(mood, CONFLICT) == {("train", 42), ("train", 43), ("dev", 2)}
    assert lines(mood, SCRIPT) == {("train", 45)}
    assert ("train", 46) in lines(mood, LENGTH)
    stars = AuditReport(report.tasks[1:], [])
    assert lines(stars, CONFLICT) == set()  # the same texts, but their labels agree
    assert report.tasks[0].classes == {"bad": (23, 1), "good": (22, 2)}
    (agreement,) = report.agreements
    assert agreement.tasks == ("mood", "stars")
    assert agreement.association > 0.8  # on distinct texts, one label determines the other
    assert agreement.equal is None  # the tasks have different labels


def test_the_audit_is_deterministic(shop: Assembly) -> None:
    assert run(shop) == run(shop)


def test_numbers_conflict_only_if_they_are_far_apart(tiny: Path, tmp_path: Path) -> None:
    rows = [{"text": f"the {word}", "label": i % 6} for i, word in enumerate(WORDS[:12])]
    close = [{"text": LONG, "label": 4}, {"text": LONG, "label": 5}]
    far = [{"text": "a dull horse", "label": 0}, {"text": "a Dull horse", "label": 5}]
    path = str(write_rows(tmp_path / "rows.tsv", [*rows, *close, *far]))
    other = str(write_rows(tmp_path / "dev.tsv", [{"text": "a bright heron", "label": 1}]))
    data = {"train": path, "dev": other}
    one = made(tiny, {"score": {"kind": "regression", "range": [0, 5], "data": data}})
    report = run(one)
    assert lines(report, CONFLICT) == {("train", 16), ("train", 17)}
    assert report.tasks[0].classes == {}
    assert "label errors were not searched" in report.tasks[0].notes[0]


def test_planted_label_errors_come_first(tiny: Path, tmp_path: Path) -> None:
    """On a body whose vectors tell the words apart, flipped labels are the most suspicious."""
    rows = [
        {"text": f"a {word} {word} {word} {other}", "label": label}
        for label, words in (("good", GOOD), ("bad", BAD))
        for word in words
        for other in WORDS[:10]
    ]
    flipped = [3, 25, 60, 88]
    for row in flipped:
        rows[row]["label"] = "bad" if rows[row]["label"] == "good" else "good"
    path = str(write_rows(tmp_path / "rows.tsv", rows))
    dev = str(write_rows(tmp_path / "dev.tsv", rows[:4] + rows[60:64]))
    report = run(made(tiny, {"mood": {"kind": "classification", "data": {"train": path, "dev": dev}}}))
    listed = [row.line - 2 for row in report.findings if row.finding == LABEL_ERROR]
    assert len(set(flipped) & set(listed[:8])) >= 3  # of 100 rows
    assert {row.suggestion for row in report.findings if row.finding == LABEL_ERROR} <= {"good", "bad"}


def test_kinds_without_labels_of_rows_are_audited_for_everything_else(tiny: Path, tmp_path: Path) -> None:
    for split, count in (("train", 24), ("dev", 6)):
        lines_of = "\n".join(json.dumps(row) for row in tagged.rows(count, seed=3))
        (tmp_path / f"{split}.jsonl").write_text(lines_of + "\n", encoding="utf-8")
    tags = tagged.recipe(tmp_path, "jsonl", "tokens", "slots")["tasks"]["slots"]
    report = run(made(tiny, {"match": matches_task(tiny), "slots": tags}))
    for task, why in zip(report.tasks, ("pairs that match have", "the features of an audit"), strict=True):
        assert any(note.startswith(f"label errors were not searched: {why}") for note in task.notes)
    assert {row.finding for row in report.findings if row.task == "slots"} >= {DUPLICATE, LEAK}
    assert not lines(report, LABEL_ERROR)


def test_rows_of_a_cluster_are_held_out_together() -> None:
    groups = np.arange(100) % 3
    clusters = np.arange(100) // 2
    folds = deal_folds(groups, clusters, seed=1)
    assert (folds[::2] == folds[1::2]).all()
    assert sorted(np.bincount(folds, minlength=FOLDS).tolist()) == [20] * FOLDS
    single = deal_folds(groups, np.arange(100), seed=1)
    for group in range(3):
        counts = np.bincount(single[groups == group], minlength=FOLDS)
        assert counts.max() - counts.min() <= 1
    assert (single != deal_folds(groups, np.arange(100), seed=2)).any()


def test_features_of_pairs(tiny: Path) -> None:
    """Cosine similarities of all layers, then (u, v, |u - v|, u * v), from vectors of each text alone."""
    one = assemble(recipe(tiny), device="cpu")
    body = one.network.body.eval()
    dataset = one.data["paraphrase"].train
    features = row_features(body, dataset, torch.device("cpu"))
    layers, width = body.shape.layers + 1, body.shape.width
    assert features.shape == (len(dataset), layers + 4 * width)
    u, v, apart, product = np.split(features[:, layers:], 4, axis=1)
    assert apart == pytest.approx(np.abs(u - v))
    assert product == pytest.approx(u * v)
    assert np.linalg.norm(u, axis=1) == pytest.approx(1, abs=1e-5)
    last = product.sum(axis=1)
    assert features[:, layers - 1] == pytest.approx((last - last.mean()) / last.std(), abs=1e-3)
    assert row_features(body, one.data["sentiment"].train, torch.device("cpu")).shape[1] == width
