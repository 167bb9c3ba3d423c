"""Metrics and baselines through real runs: the log, the model card, the report and `weft evaluate` agree."""

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from sklearn import metrics as sk

import weft
from tests.integration.command import weft as command
from tests.tiny import recipe_content, write_recipe, write_rows
from weft.report.scores import Scores
from weft.runs.reader import read_run

pytestmark = pytest.mark.usefixtures("few_resamples")


def card_cell(run: Path, task: str, metric: str, column: int) -> str:
    """A cell of the model card's table of scores."""
    lines = (run / "model" / "README.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith(f"| {task} |")]
    return next(row[column] for row in rows if row[1] == metric)


def test_a_regressions_random_baseline_has_one_source(tiny: Path, tmp_path: Path) -> None:
    """The train labels span 0 to 5, the dev labels 2 to 3: random answers lie anywhere from 0 to 5."""
    rows = [{"a": "the cat sees", "b": f"a dog {i}", "sim": 2 + i % 2} for i in range(12)]
    dev = write_rows(tmp_path / "dev.tsv", rows)
    content = recipe_content(tiny, epochs=1)
    task = content["tasks"]["similarity"]
    content["tasks"] = {"similarity": task | {"data": task["data"] | {"dev": str(dev)}}}
    weft.train(write_recipe(tmp_path, content), tmp_path / "run")
    scores = {score.metric: score for score in Scores(read_run(tmp_path / "run")).table}
    guess = scores["mse"].guess
    assert guess == pytest.approx(0.25 + 25 / 12)
    assert card_cell(tmp_path / "run", "similarity", "mse", 4) == f"{guess:.3f}"
    (tmp_path / "run" / "model" / "weft.json").unlink()
    unknown = {score.metric: score for score in Scores(read_run(tmp_path / "run")).table}["mse"].guess
    assert unknown != unknown, "without the model nobody knows the range of the train labels"


def test_a_positive_class(tiny: Path, tmp_path: Path) -> None:
    names = ["f1-positive", "precision", "recall", "mcc", "balanced-accuracy", "f1", "auc"]
    content = recipe_content(tiny)
    task = content["tasks"]["sentiment"] | {"metrics": names, "positive": "bad"}
    content["tasks"] = {"sentiment": task}
    run = tmp_path / "run"
    done = command("train", write_recipe(tmp_path, content), "-o", run)
    assert "overall = sentiment f1-positive" in done.stdout
    assert "f1 (macro)" in done.stdout
    table = pq.read_table(run / "predictions" / "sentiment.parquet").to_pydict()
    true, chosen = table["label"], table["prediction"]
    one = {"pos_label": "bad", "zero_division": 0}
    expected = {
        "f1-positive": sk.f1_score(true, chosen, **one),
        "precision": sk.precision_score(true, chosen, **one),
        "recall": sk.recall_score(true, chosen, **one),
        "mcc": sk.matthews_corrcoef(true, chosen),
        "balanced-accuracy": sk.balanced_accuracy_score(true, chosen),
        "f1": sk.f1_score(true, chosen, average="macro"),
        "auc": sk.roc_auc_score([label == "bad" for label in true], table["p_bad"]),
        "n": len(true),
    }
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    assert result["dev"]["sentiment"] == pytest.approx(expected)
    assert result["overall"] == pytest.approx(expected["f1-positive"])
    again = json.loads(command("evaluate", run, "--json").stdout)
    assert again["tasks"]["sentiment"] == pytest.approx(expected)
    shown = command("evaluate", run).stdout
    assert "overall = sentiment f1-positive" in shown
    found = {score.metric: score for score in Scores(read_run(run)).table}
    for name in names:
        assert found[name].value == pytest.approx(expected[name])
    assert card_cell(run, "sentiment", "f1 (macro)", 2) == f"{expected['f1']:.3f}"
    for text in ((run / "model" / "README.md").read_text(), (run / "report.html").read_text()):
        assert "positive class of sentiment: bad" in text
        assert "overall = sentiment f1-positive" in text
    assert re.search(r"best threshold by F1 of “bad”", (run / "report.html").read_text())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metrics": ["f1-positive"]}, r'add `positive = "bad"` or `positive = "good"` to the task'),
        ({"positive": "nice"}, r"tasks\.sentiment\.positive: found 'nice', expected bad or good"),
        ({"positive": ["bad"]}, r"tasks\.sentiment\.positive: found \['bad'\]"),
    ],
)
def test_a_positive_class_that_is_missing_or_wrong(
    tiny: Path, tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    content = recipe_content(tiny)
    content["tasks"] = {"sentiment": content["tasks"]["sentiment"] | changes}
    done = command("train", write_recipe(tmp_path, content), "-o", tmp_path / "run", code=2)
    assert re.search(message, done.stderr)
    assert not (tmp_path / "run").exists()


def test_an_auxiliary_task_does_not_count(tiny: Path, tmp_path: Path) -> None:
    """It is trained and scored, and no part of the overall score, of the selection and of the formula."""
    content = recipe_content(tiny, epochs=1)
    more = content["tasks"]["sentiment"] | {"auxiliary": True, "share_head": "sentiment"}
    content["tasks"]["sentiment"]["share_head"] = "sentiment"
    content["tasks"]["more"] = more
    run = tmp_path / "run"
    done = command("train", write_recipe(tmp_path, content), "-o", run)
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    scores = result["dev"]
    assert set(scores) == {"sentiment", "paraphrase", "similarity", "more"}
    halved = (1 + scores["similarity"]["pearson"]) / 2
    expected = (scores["sentiment"]["accuracy"] + scores["paraphrase"]["accuracy"] + halved) / 3
    assert result["overall"] == result["selection"] == pytest.approx(expected)
    assert result["auxiliary"] == ["more"]
    formula = "overall = mean of sentiment accuracy, paraphrase accuracy, (1 + similarity pearson) / 2"
    assert formula in " ".join(done.stdout.split())
    assert "more (auxiliary)" in done.stdout
    assert json.loads(command("evaluate", run, "--json").stdout)["overall"] == pytest.approx(expected)
    found = Scores(read_run(run))
    assert found.overall.value == pytest.approx(expected)
    assert found.explained[0] == formula
    for file in (run / "model" / "README.md", run / "report.html"):
        assert formula in file.read_text(encoding="utf-8")


def test_one_task_counts(tiny: Path, tmp_path: Path) -> None:
    content = recipe_content(tiny)
    content["tasks"] = {"sentiment": content["tasks"]["sentiment"] | {"auxiliary": True}}
    done = command("check", write_recipe(tmp_path, content), code=2)
    assert "every task is auxiliary" in done.stderr
