"""Other people's files: `weft init`, `weft check` and `weft train`, with nothing edited in between."""

import json
import random
from pathlib import Path

import pytest

from tests.integration.command import weft
from tests.tiny import ANIMALS, BAD, GOOD
from weft.recipes.recipe import load_recipe

DRAW = random.Random(4)


def shop_reviews(path: Path) -> Path:
    """Semicolons, a byte-order mark, an id column, two text columns, stars as numbers, missing values."""
    lines = ["\ufeffreview_id;title;body;stars;helpful"]
    for i in range(60):
        stars = i % 5 + 1
        word = DRAW.choice(GOOD if stars > 3 else BAD)
        body = f"a {word} thing, nobody could say whether the {DRAW.choice(ANIMALS)} sees {i} storms"
        if i % 20 == 7:
            body = ""
        lines.append(f"R{i:04};{word} buy number {i};{body};{'' if i % 20 == 11 else stars}.0;{DRAW.randrange(90)}")
    path.write_text("\n".join(lines).replace(";.0;", ";;") + "\n", encoding="utf-8")
    return path


def support_tickets(path: Path) -> Path:
    """Commas, quoted texts with line breaks, string labels, an unnamed index, a column with one value."""
    lines = [",ticket,team,source"]
    for i in range(48):
        team = ["billing", "delivery", "login"][i % 3]
        lines.append(f'{i},"the {DRAW.choice(ANIMALS)} said, ""{team} {i}""\nand waited over tea",{team},mail')
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def question_pairs(path: Path) -> Path:
    """A tab-separated .csv with question1, question2 and decimals for yes and no; a second numeric column."""
    lines = ["id\tqid1\tquestion1\tquestion2\tis_duplicate"]
    for i in range(50):
        one, two = DRAW.sample(ANIMALS, 2)
        other = f"could the {one if i % 2 else two} number {i} sail"
        lines.append(f"{i}\t{1000 + i}\twhether the {one} would sail {i}\t{other}\t{i % 2}.0")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def topics(path: Path) -> Path:
    """JSON lines with several labels in a list."""
    rows = []
    for i in range(40):
        tags = [name for name, on in (("sea", i % 2), ("food", i % 3 == 0)) if on]
        rows.append({"note": f"the captain lit {i} paper cups before dawn", "tags": tags})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def split_scores(folder: Path) -> list[Path]:
    """Train and dev in two files, a regression with any range."""
    for split, n in (("train", 40), ("dev", 20)):
        lines = ["text_a,text_b,similarity"]
        for i in range(n):
            one, two = DRAW.sample(ANIMALS, 2)
            lines.append(f"the {one} sees fog {split} {i},the {two} sees tea {i},{DRAW.uniform(-10, 10):.2f}")
        (folder / f"closeness_{split}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [folder / "closeness_train.csv", folder / "closeness_dev.csv"]


def test_init_check_and_train_without_an_edit(tiny: Path, tmp_path: Path) -> None:
    files = [
        shop_reviews(tmp_path / "Shop reviews (2024).csv"),
        support_tickets(tmp_path / "tickets.csv"),
        question_pairs(tmp_path / "questions.csv"),
        topics(tmp_path / "topics.jsonl"),
        *split_scores(tmp_path),
    ]
    out = tmp_path / "mine.toml"
    done = weft("init", *files, "-o", out)
    assert done.stdout == out.read_text(encoding="utf-8")

    tasks = load_recipe(out).tasks
    assert list(tasks) == ["Shop-reviews-2024", "tickets", "questions", "topics", "closeness"]
    shop = tasks["Shop-reviews-2024"]
    assert (shop.kind, shop.data.text, shop.data.label) == ("ordinal", "body", "stars")
    assert (shop.data.on_bad_rows, shop.data.dev_fraction) == ("skip", 0.2)
    assert (tasks["tickets"].kind, tasks["tickets"].data.text, tasks["tickets"].data.label) == (
        "classification",
        "ticket",
        "team",
    )
    questions = tasks["questions"]
    assert (questions.kind, questions.reading, questions.data.label) == ("classification", "cross", "is_duplicate")
    assert (questions.data.text, questions.data.text2) == ("question1", "question2")
    assert (tasks["topics"].kind, tasks["topics"].data.label) == ("multilabel", "tags")
    closeness = tasks["closeness"]
    assert (closeness.kind, closeness.data.text, closeness.data.text2) == ("regression", "text_a", "text_b")
    assert closeness.data.dev is not None
    assert closeness.data.dev_fraction is None

    body = ["--body", tiny / "body", "--set", "max_length=48"]
    checked = weft("check", out, *body).stdout
    assert "rows skipped (empty text)" in checked
    assert "have a blank label and are not asked" in checked
    weft("train", out, "-o", tmp_path / "run", *body, "--budget", "steps=3")
    scores = json.loads(weft("evaluate", tmp_path / "run", "--json").stdout)
    assert set(scores["tasks"]) == set(tasks)
    (answer,) = json.loads(weft("predict", tmp_path / "run", "topics", "the captain", "--json").stdout)
    assert set(answer["probabilities"]) == {"sea", "food"}
    assert isinstance(answer["label"], list)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("n,m\n1,2\n3,4\n", "no column looks like text"),
        ("text\nthe quiet harbour woke\nbefore dawn and a cook\nlit her stove while\n", "no column looks like a label"),
        ("text,label\n", "has no rows"),
    ],
)
def test_files_that_say_too_little(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content, encoding="utf-8")
    done = weft("init", path, "-o", tmp_path / "r.toml", code=2)
    assert message in done.stderr
    assert not (tmp_path / "r.toml").exists()


def test_an_existing_recipe_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text("mine")
    assert "already exists" in weft("init", topics(tmp_path / "t.jsonl"), "-o", tmp_path / "r.toml", code=2).stderr
    assert (tmp_path / "r.toml").read_text() == "mine"
