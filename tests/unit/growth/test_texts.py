"""Texts on which the answers of the old model hold the old tasks."""

from pathlib import Path

import numpy as np
import pytest

from tests.tiny import recipe_content, write_rows
from weft.foundation.errors import UserError
from weft.growth.texts import HeldTexts, made_pairs, mixed, texts_of_file, texts_of_tasks
from weft.recipes.recipe import parse_recipe
from weft.tasks.config import TaskConfig

TEXTS = [" ".join(f"word{i}-{j}" for j in range(10)) for i in range(200)]


def overlap(one: str, two: str) -> float:
    first, second = set(one.split()), set(two.split())
    return len(first & second) / len(first | second)


def test_a_mixed_text_begins_as_one_and_ends_as_the_other() -> None:
    assert mixed("a b c d", "p q r s", 0.5) == "a b r s"
    assert mixed("a b c d", "p q r", 0.5) == "a b r"
    assert (mixed("a  b", "p q", 1.0), mixed("a  b", "p  q", 0.0)) == ("a  b", "p  q")
    assert mixed("a", "p", 0.4) == "p"


def test_made_pairs_range_from_unrelated_to_identical() -> None:
    pairs = list(made_pairs(TEXTS, seed=3))
    assert len(pairs) == len(TEXTS)
    assert all(TEXTS[row] in pair for row, pair in enumerate(pairs)), "each pair has a text as it is"
    unrelated = [pair for pair in pairs if set(pair) <= set(TEXTS)]
    assert 60 < len(unrelated) < 130
    others = [overlap(*pair) for pair in pairs if pair not in unrelated]
    assert all(np.histogram(others, bins=4, range=(0, 1))[0] >= 5)
    assert 60 < sum(pair[0] == TEXTS[row] for row, pair in enumerate(pairs)) < 140, "on both sides"
    assert list(made_pairs(TEXTS, seed=3)) == pairs
    assert list(made_pairs(TEXTS, seed=4)) != pairs
    assert list(made_pairs(TEXTS[:1], seed=3)), "a single text is paired with itself"


def test_pairs_of_rows_are_kept_and_single_texts_are_paired() -> None:
    held = HeldTexts.of([("a cat", "a dog"), ("a film",), ("a cat", "a dog"), ("  ",), ("a cat", "")], seed=1)
    assert held.singles == ["a cat", "a dog", "a film"]
    assert held.pairs[0] == ("a cat", "a dog")
    assert all("film" in one and "film" in two for one, two in held.pairs[1:])


def test_at_most_so_many_texts_and_pairs_are_drawn() -> None:
    rows = [(text,) for text in TEXTS]
    whole, held = HeldTexts.of(rows, seed=1), HeldTexts.of(rows, seed=1, most=20)
    assert (len(held.singles), len(held.pairs)) == (20, 20)
    assert [text for text in whole.singles if text in held.singles] == held.singles
    assert [pair for pair in whole.pairs if pair in held.pairs] == held.pairs
    assert HeldTexts.of(rows, seed=2, most=20).singles != held.singles
    assert HeldTexts.of(rows, seed=1, most=1000) == whole


def task(**data: str) -> TaskConfig:
    reading = "cross" if "text2" in data else "single"
    return TaskConfig.model_validate({"kind": "classification", "reading": reading, "data": data})


def test_frames_have_the_columns_of_their_tasks() -> None:
    held = HeldTexts(["a", "b"], [("a", "b")])
    frames = held.frames({"mood": task(text="review"), "same": task(text="a", text2="b")})
    assert list(frames["mood"]["unlabelled"].rows()) == [{"review": "a"}, {"review": "b"}]
    assert list(frames["same"]["unlabelled"].rows()) == [{"a": "a", "b": "b"}]


def test_columns_of_a_file(tmp_path: Path) -> None:
    tasks = [task(text="review"), task(text="a", text2="b")]
    both = write_rows(tmp_path / "both.tsv", [{"a": "one", "review": "three", "b": "two"}])
    assert list(texts_of_file(both, tasks)) == [("one", "two")]
    single = write_rows(tmp_path / "single.tsv", [{"a": "one", "review": "three"}])
    assert list(texts_of_file(single, tasks)) == [("three",)]
    standard = write_rows(tmp_path / "standard.tsv", [{"text": "one", "text2": "two", "a": "x", "b": "y"}])
    assert list(texts_of_file(standard, tasks)) == [("one", "two")]
    other = write_rows(tmp_path / "other.tsv", [{"c": "one", "d": "two"}])
    with pytest.raises(UserError, match=r"other.tsv: has the columns 'c', 'd', expected 'text' and 'text2' or 'a' and"):
        list(texts_of_file(other, tasks))


def test_texts_of_tasks_leave_held_out_rows_out(tiny: Path, tmp_path: Path) -> None:
    from weft.data.tokenizer import Tokenizer

    content = recipe_content(tiny)
    more = write_rows(tmp_path / "more.tsv", [{"a": "the cat", "b": "a dog"}])
    content["tasks"]["paraphrase"]["data"]["unlabelled"] = str(more)
    train = content["tasks"]["sentiment"]["data"]["train"]
    content["tasks"]["sentiment"]["data"] = {"train": train, "dev_fraction": 0.5}
    recipe = parse_recipe(content, "test")
    tokenizer = Tokenizer.load(tiny / "body")
    pairs = list(texts_of_tasks(recipe, ["paraphrase"], tokenizer))
    assert (len(pairs), pairs[-1]) == (35, ("the cat", "a dog"))
    assert 0 < len(list(texts_of_tasks(recipe, ["sentiment"], tokenizer))) < 26
