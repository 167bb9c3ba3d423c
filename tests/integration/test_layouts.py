"""Files in twelve layouts, from `weft init` to answers, with nothing edited by hand."""

import json
from pathlib import Path

import pyarrow.parquet as pq

from tests.integration.command import weft
from tests.layouts import CASES, ROWS
from weft.recipes.recipe import load_recipe


def test_init_check_train_and_predict_on_twelve_layouts(tiny: Path, tmp_path: Path) -> None:
    recipe, run = tmp_path / "mine.toml", tmp_path / "run"
    for case in CASES:
        case.write(tmp_path / case.file)
    weft("init", *(tmp_path / case.file for case in CASES), "-o", recipe)
    tasks = {name: expected for case in CASES for name, expected in case.tasks.items()}
    assert list(load_recipe(recipe).tasks) == list(tasks)

    body = ["--body", tiny / "body", "--set", "max_length=48"]
    checked = weft("check", recipe, *body).stdout
    for part in (part for case in CASES for part in case.says):
        assert part in checked
    doubts = sum(case.doubts for case in CASES)
    assert checked.count("doubt: ") == doubts
    assert f"Open warnings and doubts, see above: {doubts}" in checked
    counted = [line for line in checked.splitlines() if " rows; " in line]
    assert sum(int(line.split(": ")[1].split()[0]) for line in counted) == ROWS * len(tasks)

    trained = weft("train", recipe, "-o", run, *body, "--budget", "steps=2")
    assert "quotes are part of the texts (48 rows have some)" in trained.stdout + trained.stderr
    assert set(json.loads(weft("evaluate", run, "--json").stdout)["tasks"]) == set(tasks)
    for case in CASES:
        source, answers = tmp_path / case.file, tmp_path / f"{case.file}.jsonl"
        task = next(iter(case.tasks))
        done = weft("predict", run, task, "--input", source, "--output", answers)
        assert ("quotes are part of the texts" in done.stderr) == (case.file == "said.tsv")
        assert len(answers.read_text(encoding="utf-8").splitlines()) == ROWS

    def embedded(task: str, source: str) -> list[str]:
        output = tmp_path / f"{task}.parquet"
        weft("embed", run, "--task", task, "--input", tmp_path / source, "--output", output)
        texts: list[str] = pq.read_table(output)["text"].to_pylist()
        return texts

    assert sum('"' in text for text in embedded("said", "said.tsv")) == 48
    assert all(text.startswith("Grüße, ") for text in embedded("post", "post.csv"))
