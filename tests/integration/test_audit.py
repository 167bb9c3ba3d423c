"""`weft check --audit`: what it prints and writes, and how many flipped labels it finds."""

import csv
from pathlib import Path

import numpy as np
import pytest

from tests.integration.command import weft
from tests.tiny import recipe_content, write_recipe
from weft.foundation.shipped import shipped_folder


def test_it_lists_rows_and_never_overwrites(tiny: Path, tmp_path: Path) -> None:
    path = write_recipe(tmp_path, recipe_content(tiny))
    fixed = tmp_path / "fixed.csv"
    shown = weft("check", path, "--audit", "--write", fixed).stdout
    assert "probable label errors in train" in shown
    assert "findings are listed in" in shown.replace("\n", " ")
    assert shown.rstrip().endswith("The recipe and its data are in order.")
    with fixed.open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert {row["task"] for row in rows} <= {"sentiment", "paraphrase", "similarity"}
    for row in rows:
        line = Path(row["file"]).read_text(encoding="utf-8").splitlines()[int(row["line"]) - 1]
        assert row["text"] in line
    before = fixed.read_bytes()
    assert "overwrites no file" in weft("check", path, "--audit", "--write", fixed, code=2).stderr
    train = tiny / "data/sentiment-train.tsv"
    kept = train.read_bytes()
    assert "overwrites no file" in weft("check", path, "--audit", "--write", train, code=2).stderr
    assert (fixed.read_bytes(), train.read_bytes()) == (before, kept)


def test_write_goes_with_audit(tiny: Path, tmp_path: Path) -> None:
    path = write_recipe(tmp_path, recipe_content(tiny))
    assert "--audit" in weft("check", path, "--write", tmp_path / "fixed.csv", code=2).stderr
    assert "expected a name that ends in" in weft("check", path, "--audit", "--write", tmp_path / "x", code=2).stderr


def flip(task: str, classes: int, folder: Path, seed: int) -> set[int]:
    """Copy the starter data with 5 % of the train labels flipped at random; returns the flipped lines."""
    lines = (shipped_folder("starter") / f"{task}-train.tsv").read_text(encoding="utf-8").splitlines()
    draw = np.random.default_rng(seed)
    chosen = draw.choice(np.arange(1, len(lines)), round(0.05 * (len(lines) - 1)), replace=False)
    for at in chosen:
        rest, _, label = lines[at].rpartition("\t")
        lines[at] = f"{rest}\t{(int(label) + draw.integers(1, classes)) % classes}"
    (folder / f"{task}-train.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {int(at) + 1 for at in chosen}


def precision_and_recall(task: str, wrong: set[int], listed: list[dict[str, str]]) -> tuple[float, float]:
    lines = {int(r["line"]) for r in listed if (r["task"], r["finding"]) == (task, "probable label error")}
    return len(lines & wrong) / max(1, len(lines)), len(lines & wrong) / len(wrong)


@pytest.mark.long
def test_flipped_starter_labels_are_found(tmp_path: Path) -> None:
    """Measured over five seeds: docs/audit.md."""
    classes = {"sentiment": 5, "paraphrase": 2}
    wrong = {task: flip(task, count, tmp_path, seed=0) for task, count in classes.items()}
    recipe = (shipped_folder("recipes") / "starter.toml").read_text(encoding="utf-8")
    for task, text2 in (("sentiment", ""), ("paraphrase", ', text2 = "text2"')):
        dev = shipped_folder("starter") / f"{task}-dev.tsv"
        data = f'{{ train = "{task}-train.tsv", dev = "{dev}"{text2} }}'
        recipe = recipe.replace(f'data = "starter/{task}"', f"data = {data}")
    (tmp_path / "flipped.toml").write_text(recipe, encoding="utf-8")
    weft("check", tmp_path / "flipped.toml", "--audit", "--write", tmp_path / "fixed.csv")
    with (tmp_path / "fixed.csv").open(encoding="utf-8", newline="") as handle:
        listed = list(csv.DictReader(handle))
    found = {task: precision_and_recall(task, wrong[task], listed) for task in classes}
    assert found["paraphrase"][0] > 0.15  # a random list has 0.05
    assert found["paraphrase"][1] > 0.4
    assert found["sentiment"][1] > 0.4
    first = [int(r["line"]) for r in listed if (r["task"], r["finding"]) == ("sentiment", "probable label error")][:17]
    assert len(wrong["sentiment"] & set(first)) >= 2  # 0.85 by chance
