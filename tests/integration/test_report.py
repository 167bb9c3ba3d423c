"""`weft report` and `weft probe` on a real run, and what training leaves for them."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft as package
from tests.integration.command import weft
from tests.tiny import recipe_content, write_recipe, write_rows
from weft.cli.report import report
from weft.inference.probe import probe
from weft.kinds import KINDS
from weft.report.page import write_report
from weft.report.words import missing
from weft.runs.reader import read_run
from weft.tasks.building import build_reader


@pytest.fixture(scope="module")
def recipe_file(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    content = recipe_content(tiny, epochs=3, log={"conflicts_every": 2}, calibrate=True, trackers=["tensorboard"])
    return write_recipe(tmp_path_factory.mktemp("recipe"), content)


@pytest.fixture(scope="module")
def run(recipe_file: Path) -> Path:
    pytest.importorskip("tensorboard")
    out = recipe_file.parent / "run"
    done = weft("train", recipe_file, "-o", out)
    assert f"a report in {out / 'report.html'}" in done.stdout
    return out


@pytest.mark.usefixtures("few_resamples")  # as in the run's process
def test_training_leaves_a_report_with_everything(run: Path, tmp_path: Path) -> None:
    text = (run / "report.html").read_text(encoding="utf-8")
    for part in (
        "Embeddings by label",
        "Gradient conflicts",
        "train sample",
        "Calibration",
        "Residuals",
        "Worst errors",
    ):
        assert part in text
    notes = re.findall(r"Not in this report</h3><ul>(.*?)</ul>", text, re.DOTALL)
    assert re.findall("<li>", notes[0]) == ["<li>"]  # the bias probe alone
    write_report([run], tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == text
    assert list((run / "tensorboard").iterdir())


def test_evaluations_log_train_scores_and_losses(run: Path, recipe_file: Path, tmp_path: Path) -> None:
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    evaluations = [record for record in records if record["event"] == "evaluation"]
    expected = package.load(run).evaluate("train").scores
    best = [record for record in evaluations if record["best"]][-1]
    for task, scores in best["train"].items():  # the tiny sets are smaller than the sample
        assert scores == pytest.approx(expected[task])
    assert set(best["losses"]) == set(best["train_losses"]) == {"sentiment", "paraphrase", "similarity"}
    out = tmp_path / "off"
    package.train(recipe_file, out, settings=["log.train_rows=0", "trackers=[]"])
    assert "train" not in json.loads((out / "metrics.jsonl").read_text().splitlines()[0])
    same = "model/model.safetensors"
    assert (out / same).read_bytes() == (run / same).read_bytes()  # a log changes no weight


def test_text_is_plain_when_piped(run: Path) -> None:
    done = weft("report", run, "--text")
    assert "\x1b" not in done.stdout
    result = json.loads((run / "result.json").read_text())
    for line in ("before", "after", "95 % interval", f"{result['overall']:.3f}", "sentiment"):
        assert line in done.stdout


def test_several_runs_and_figures(run: Path, recipe_file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    package.train(recipe_file, other, seed=3, steps=4, settings=["trackers=[]"])
    weft("report", run, other, "-o", tmp_path / "both.html", "--figures", tmp_path / "figures")
    text = (tmp_path / "both.html").read_text(encoding="utf-8")
    assert "2 runs compared" in text
    assert "Disagreements" in text
    names = {path.stem for path in (tmp_path / "figures").iterdir()}
    assert {"sentiment-bars", "overall-over-by-time", "gap-1"} <= names
    for path in (tmp_path / "figures").iterdir():
        start = path.read_bytes()[:8]
        assert start.startswith(b"\x89PNG" if path.suffix == ".png" else b"<?xml")
    assert "<text" in (tmp_path / "figures" / "gap-1.svg").read_text()  # letters, not outlines
    assert "a run with a budget" in " ".join(missing(read_run(other)))


def test_bad_input_is_one_message(run: Path, tmp_path: Path) -> None:
    done = weft("report", run, "-o", "none/x.html", code=2, cwd=tmp_path)
    assert "there is no folder none" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "say what to make"),
        ({"out": "x.pdf"}, "ends in .html"),
        ({"runs": ["/none"], "text": True}, "is not a run folder"),
        ({"figures": "result.json"}, "is a file; name a folder"),
    ],
)
def test_the_command_says_what_is_wrong(run: Path, options: dict[str, Any], message: str) -> None:
    places = {key: run / value for key, value in options.items() if key in ("out", "figures")}
    runs = [Path(value) for value in options.get("runs", [run])]
    with pytest.raises(package.UserError, match=message):
        report(runs, text=options.get("text", False), **places)


def test_a_calibrated_model_answers_at_its_temperature(run: Path) -> None:
    saved = json.loads((run / "model" / "weft.json").read_text())["temperatures"]
    assert set(saved) == {"sentiment", "paraphrase"}
    model = package.load(run)
    (prediction,) = model.predict("sentiment", ["a dull film"])
    reader = build_reader(model.config, "sentiment", model.tokenizer)
    ids = np.array(model.tokenizer.encode(["a dull film"])[0], dtype=np.int32)
    raw = model.engine.answers("sentiment", [reader.sequences(ids, None)])
    assert prediction.probabilities is not None
    found = list(prediction.probabilities.values())
    assert found == pytest.approx(KINDS["ordinal"].temper(raw, saved["sentiment"])[0].tolist())
    assert np.argmax(found) == raw[0].argmax()


def test_the_model_card_is_one_for_the_hub(run: Path) -> None:
    from huggingface_hub import ModelCard

    card = ModelCard.load(run / "model" / "README.md")
    result = json.loads((run / "result.json").read_text())
    found = {(r.task_name, r.metric_type): r.metric_value for r in card.data.eval_results}
    for task, scores in result["dev"].items():
        for metric, value in scores.items():
            if metric != "n":
                assert found[task, metric] == pytest.approx(value, abs=1e-4)
    for part in ("95 % interval", "## Limits", "## Data", "weft.load", "AutoModel", "[tasks.sentiment]"):
        assert part in card.text
    assert str(run.parent) not in card.content  # nothing of this machine's folders


def test_probe(run: Path, tmp_path: Path) -> None:
    moods = (("dull", "bad"), ("warm", "good"))
    rows = [{"text": f"{who} is a {word} film", "label": mood} for who in ("he", "she") for word, mood in moods]
    write_rows(tmp_path / "dev.tsv", rows)
    content = recipe_content(Path(package.load(run).config.body).parent, epochs=1)
    content["tasks"] = {"sentiment": content["tasks"]["sentiment"]}
    content["tasks"]["sentiment"]["data"] |= {"dev": str(tmp_path / "dev.tsv")}
    out = tmp_path / "run"
    model = package.train(write_recipe(tmp_path, content), out)
    found = json.loads(weft("probe", out, "--json").stdout)
    task = found["tasks"]["sentiment"]
    assert (task["rows"], task["of"]) == (4, 4)
    assert 0 <= task["mean_move"] <= task["largest_move"] <= 1
    example = task["examples"][0]
    one, two = (model.predict("sentiment", list(example[key]))[0].probabilities for key in ("texts", "swapped"))
    assert one is not None
    assert two is not None
    assert example["move"] == pytest.approx(sum(abs(one[k] - two[k]) for k in one) / 2, abs=1e-6)
    write_report([out], tmp_path / "page.html")
    assert "Bias probe" in (tmp_path / "page.html").read_text()
    write_rows(tmp_path / "dev.tsv", [{"text": "a dull film", "label": "bad"}])
    with pytest.raises(package.UserError, match="no text of the dev rows has a gendered word"):
        probe(model)
