"""Evaluations during training score a sample of the dev rows; the final scores are those of all rows."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import weft as package
from tests.integration.command import weft
from tests.sourced import table_content, write_table
from tests.tiny import GOOD, recipe_content, write_recipe, write_rows
from weft.build import assemble
from weft.recipes.assembly import Assembly
from weft.recipes.costs import LEAST_ROWS, SHARE, BodyTokens, count_tokens, passes_of
from weft.recipes.recipe import parse_recipe

DEV = {"sentiment": 13, "paraphrase": 17, "similarity": 11}


@pytest.fixture(scope="module")
def recipe_file(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    content = recipe_content(tiny, epochs=6, dev_sample=8, calibrate=True)
    content["optimizer"]["lr"] = 5e-3
    content["tasks"]["paraphrase"]["thresholds"] = "tuned"
    return write_recipe(tmp_path_factory.mktemp("recipe"), content)


@pytest.fixture(scope="module")
def run(recipe_file: Path) -> Path:
    out = recipe_file.parent / "run"
    said = weft("train", recipe_file, "-o", out).stdout
    assert "score a fixed sample of the dev rows (8 of 13 sentiment, 8 of 17 paraphrase, 8 of 11 similarity)" in said
    assert "on all dev rows" in said
    return out


def records_of(run: Path, event: str) -> list[dict[str, Any]]:
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [record for record in records if record["event"] == event]


def test_the_sample_selects_and_all_rows_score(run: Path) -> None:
    evaluations, (final,) = records_of(run, "evaluation"), records_of(run, "final")
    assert len(evaluations) == 7
    assert all(record["sample"] for record in evaluations)
    assert {scores["n"] for record in evaluations for scores in record["dev"].values()} == {8}
    best = [record for record in evaluations if record["best"]][-1]
    assert best["selection"] == max(record["selection"] for record in evaluations[1:])
    assert (final["step"], final["epoch"]) == (best["step"], best["epoch"])
    assert {task: scores["n"] for task, scores in final["dev"].items()} == DEV
    result = json.loads((run / "result.json").read_text())
    assert result["dev"] == final["dev"]
    assert (result["best_step"], result["overall"]) == (final["step"], final["overall"])
    assert result["steps"] == result["planned_steps"]
    assert result["selected_on"] == dict.fromkeys(DEV, 8)
    assert result["before"]["dev"] == evaluations[0]["dev"]


def test_files_of_the_run_have_all_rows(run: Path) -> None:
    for task, rows in DEV.items():
        assert pq.read_metadata(run / "predictions" / f"{task}.parquet").num_rows == rows
    card = (run / "model" / "README.md").read_text()
    assert "best on a sample of these rows (8 of sentiment, 8 of paraphrase, 8 of similarity)" in card
    page = (run / "report.html").read_text()
    assert "sample of the dev rows (8 of sentiment, 8 of paraphrase, 8 of similarity)" in page
    assert len(package.open_run(run).evaluations) == 7


def test_the_saved_model_has_the_final_scores(run: Path) -> None:
    """So the weights that were scored at the end are those of the best epoch, not of the last one."""
    result = json.loads((run / "result.json").read_text())
    found = json.loads(weft("evaluate", run, "--json").stdout)
    for task in ("sentiment", "similarity"):
        assert found["tasks"][task] == pytest.approx(result["dev"][task])
    # thresholds are tuned on all dev rows: what `evaluate` shows is their naive score
    assert found["tasks"]["paraphrase"]["accuracy"] == pytest.approx(
        result["thresholds"]["paraphrase"]["naive"]["accuracy"]
    )


def test_all_rows_are_scored_if_asked_for(recipe_file: Path, run: Path, tmp_path: Path) -> None:
    """The sample changes no weight: training is the same step by step."""
    out = tmp_path / "run"
    weft("train", recipe_file, "-o", out, "--set", "dev_sample=all")
    assert records_of(out, "final") == []
    assert not any("sample" in record for record in records_of(out, "evaluation"))
    assert "selected_on" not in json.loads((out / "result.json").read_text())
    steps = [
        [{key: value for key, value in record.items() if key != "seconds"} for record in records_of(one, "step")]
        for one in (run, out)
    ]
    assert steps[0] == steps[1]


def test_small_sets_are_scored_whole_by_default(tiny: Path) -> None:
    made = assemble(parse_recipe(recipe_content(tiny), "test"), device="cpu")
    assert not made.samples_dev
    assert {task: len(rows) for task, rows in made.dev_sample.items()} == DEV


def test_a_budget_evaluates_all_rows(tiny: Path) -> None:
    recipe = parse_recipe(recipe_content(tiny, dev_sample=8), "test")
    made = assemble(recipe, steps=4, device="cpu")
    assert not made.samples_dev
    assert any(note.startswith("dev_sample: has no effect with --budget") for note in made.notes)


@pytest.mark.parametrize("value", ["some", 1, True, 2.5])
def test_other_values_are_refused(tiny: Path, value: object, tmp_path: Path) -> None:
    file = write_recipe(tmp_path, recipe_content(tiny, dev_sample=value))
    assert "dev_sample" in weft("check", file, code=2).stderr


def large(tiny: Path, folder: Path, dev: int, **changes: Any) -> Assembly:
    """A recipe with one task of 10,000 train rows and many dev rows."""
    files = {
        split: str(
            write_rows(
                folder / f"{split}-{rows}.tsv",
                [{"text": " ".join([GOOD[i % 5]] * (1 + i % 9)), "label": i % 2} for i in range(rows)],
            )
        )
        for split, rows in (("train", 10_000), ("dev", dev))
    }
    content = recipe_content(tiny, tasks={"sentiment": {"kind": "classification", "batch_size": 8, "data": files}})
    return assemble(parse_recipe(content | changes, "test"), device="cpu")


def test_the_share_of_evaluations_follows_from_tokens(tiny: Path, tmp_path: Path) -> None:
    made = large(tiny, tmp_path, 4000, epochs=20)
    rows = len(made.dev_sample["sentiment"])
    assert LEAST_ROWS < rows < 4000
    assert rows % 10 == 0
    passes = [passes_of(made.network, mode) for mode in made.recipe.modes()]
    assert passes == [3]
    training = BodyTokens.of(made.data, made.step).of_training(made.plan, passes)
    assert training == pytest.approx(3 * 20 * int(made.data["sentiment"].train.token_counts().sum()), rel=0.02)
    cost = 21 * (count_tokens(made.dev_sample) + count_tokens(made.train_sample()))
    assert 0.8 * SHARE * training < cost <= SHARE * training


def test_the_sample_is_the_same_for_every_seed_and_nested(tiny: Path, tmp_path: Path) -> None:
    first, other, longer = (
        large(tiny, tmp_path, 4000, epochs=epochs, seed=seed).dev_sample["sentiment"].rows.tolist()
        for epochs, seed in ((20, 1), (20, 2), (3, 1))
    )
    assert first == other
    assert set(longer) < set(first), "fewer epochs leave less time for the first evaluation"


def test_a_frozen_body_leaves_less_time(tiny: Path, tmp_path: Path) -> None:
    made = large(tiny, tmp_path, 4000, epochs=20, trainable="frozen")
    assert len(made.dev_sample["sentiment"]) == LEAST_ROWS


def test_tasks_of_one_source_share_the_rows_of_their_sample(tiny: Path, tmp_path: Path) -> None:
    content = table_content(tiny, write_table(tmp_path / "table.tsv", rows=60, blank=0.3), dev_sample=20)
    made = assemble(parse_recipe(content, "test"), device="cpu")
    rows = {task: set(own.rows.tolist()) for task, own in made.dev_sample.items()}
    assert {len(own) for own in rows.values()} == {20}
    assert len(set.union(*rows.values())) < 40, "independent samples of four tasks would have more rows"
