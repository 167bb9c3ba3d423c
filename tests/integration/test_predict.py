"""`weft predict` for several tasks, columns that pass through, and empty texts, as a user types it."""

import csv
import json
from pathlib import Path

import pytest

from tests.exported import write_model
from tests.integration.command import weft
from tests.tiny import write_rows

TASKS = {
    "mood": {"like": "sentiment"},
    "tags": {"like": "sentiment", "kind": "multilabel"},
    "near": {"like": "similarity"},
}


@pytest.fixture(scope="module")
def model(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tiny, tmp_path_factory.mktemp("model"), TASKS)


def test_several_tasks_for_one_text(model: Path) -> None:
    found = json.loads(weft("predict", model, "--task", "mood,tags", "a lovely film", "--json").stdout)
    assert [answer["task"] for answer in found] == ["mood", "tags"]
    alone = json.loads(weft("predict", model, "mood", "a lovely film", "--json").stdout)
    assert found[0]["probabilities"] == pytest.approx(alone[0]["probabilities"], abs=1e-6)
    found = json.loads(weft("predict", model, "--all", "a lovely film", "a cat", "--json").stdout)
    assert [answer["task"] for answer in found] == ["mood", "tags", "near"]
    lines = weft("predict", model, "--all", "a lovely film", "a cat").stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == ["mood", "tags", "near"]


def test_several_tasks_for_a_file(model: Path, tmp_path: Path) -> None:
    rows = [{"id": i, "text": f"a cat {i}", "text2": "a dog", "label": "mine"} for i in range(5)]
    source = write_rows(tmp_path / "in.csv", rows, delimiter=",")
    done = weft("predict", model, "--all", "--input", source, "--output", tmp_path / "out.csv")
    assert done.stdout == f"5 answers -> {tmp_path / 'out.csv'}\n"
    found = list(csv.DictReader((tmp_path / "out.csv").open()))
    assert [row["id"] for row in found] == list("01234")
    assert {row["label"] for row in found} == {"mine"}
    assert float(found[2]["near.score"])
    assert found[2]["mood.label"] in ("bad", "good")
    done = weft(
        "predict", model, "mood", "--input", source, "--output", tmp_path / "one.csv", "--keep-columns", "id,label"
    )
    assert "its column 'label' is called 'input_label' in the output" in done.stderr
    with (tmp_path / "one.csv").open() as file:
        assert next(csv.reader(file)) == ["id", "input_label", "task", "label", "score", "p_bad", "p_good"]
    weft("predict", model, "mood", "--input", source, "--output", tmp_path / "none.csv", "--keep-columns", "none")
    assert (tmp_path / "none.csv").read_text().splitlines()[0] == "task,label,score,p_bad,p_good"
    listed = json.loads(weft("predict", model, "--task", "tags,mood", "--input", source, "--json").stdout)
    assert [answer["task"] for answer in listed] == ["tags", "mood"] * 5


def test_empty_texts(model: Path, tmp_path: Path) -> None:
    source = write_rows(tmp_path / "in.csv", [{"id": 1, "text": "a cat"}, {"id": 2, "text": ""}], delimiter=",")
    for arguments in (["predict", model, "mood", "--input", source], ["embed", model, "--input", source]):
        output = [] if arguments[0] == "predict" else ["--output", tmp_path / "v.npy"]
        said = weft(*arguments, *output, code=2).stderr
        assert f"{source}:3: column 'text' is empty, expected a text (see --on-empty)" in said
    found = json.loads(weft("predict", model, "mood", "--input", source, "--on-empty", "skip", "--json").stdout)
    assert [answer["label"] is None for answer in found] == [False, True]
    lines = weft("predict", model, "mood", "--input", source, "--on-empty", "skip").stdout.splitlines()
    assert lines[1] == "no answer (the text is empty)"
    assert "is empty, expected a text" in weft("predict", model, "mood", "", code=2).stderr
    assert weft("predict", model, "mood", "", "--on-empty", "keep").stdout
    weft("embed", model, "--input", source, "--output", tmp_path / "v.npy", "--on-empty", "keep")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a TASK, several with --task A,B, or --all"),
        (["--task", "mood", "--all", "a"], "--task and --all exclude each other"),
        (["--task", "mood,none", "a"], "the model has no task 'none'; it has mood, tags, near"),
        (["--task", "mood,mood", "a"], "expected at least one, each once"),
        (["--all", "mood", "a", "b"], "found 3 texts; with --task or --all no TASK"),
        (["--all", "a cat"], "task 'near' reads two texts for each row"),
        (["--all"], "give either a TEXT or --input FILE"),
        (["mood", "a", "--on-empty", "drop"], "--on-empty drop: expected error, skip or keep"),
        (["mood", "a", "--keep-columns", "none"], "--keep-columns goes with --output"),
        (["mood", "a", "b"], "task 'mood' reads one text"),
    ],
)
def test_what_cannot_be_asked(model: Path, arguments: list[str], message: str) -> None:
    assert message in weft("predict", model, *arguments, code=2).stderr
