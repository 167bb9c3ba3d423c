"""The shipped recipes as a collection; what each must hold is in tests/contracts/test_reports.py."""

import re
import tomllib
from pathlib import Path

import pytest

from weft.foundation.content import Content
from weft.foundation.errors import UserError
from weft.recipes.library import find_shipped, library, reports
from weft.recipes.recipe import load_recipe, parse_recipe

ROWS = {name: shipped for name, shipped in library().items() if shipped.report is not None}


def test_every_row_of_the_published_tables_has_an_id() -> None:
    counts = {report.report: sum(row.report == report.report for row in ROWS.values()) for report in reports()}
    assert counts == {0: 10, 1: 90, 2: 18, 3: 7, 4: 29}
    assert len(ROWS) >= 130


def test_only_aliases_are_the_same_recipe() -> None:
    def bare(content: Content) -> str:
        return str(parse_recipe({**content, "name": "x"}, "x"))

    seen: dict[str, str] = {}
    for name, shipped in ROWS.items():
        if shipped.alias:
            assert bare(shipped.content) == bare(ROWS[shipped.alias].content)
        else:
            key = bare(shipped.content)
            assert key not in seen, f"{name} and {seen.get(key)} are the same recipe: one must be an alias"
            seen[key] = name


@pytest.mark.parametrize("name", ROWS)
def test_the_printed_text_is_the_recipe(name: str) -> None:
    assert tomllib.loads(ROWS[name].text) == ROWS[name].content


def test_aliases_have_their_target_s_name(tmp_path: Path) -> None:
    assert load_recipe("1-decay-1", data_dir=tmp_path).name == "1-w-0.1-1-0.2"


def test_published_figures_are_scores_of_the_recipe_s_tasks() -> None:
    for name, shipped in ROWS.items():
        assert shipped.published is not None
        for scores in (shipped.published.dev, shipped.published.test):
            assert set(scores) <= set(shipped.content["tasks"]), name
            assert all(0 < value < 1 for value in scores.values()), name


def test_published_overall_scores_follow_from_the_figures() -> None:
    """Reports 1 and 4 count a correlation r as (1 + r) / 2; a slip of the pen in a table would show here."""
    checked = 0
    for name, shipped in ROWS.items():
        published = shipped.published
        if published is None or published.overall is None or shipped.report not in (1, 4):
            continue
        dev = published.dev
        ours = (dev["sentiment"] + dev["paraphrase"] + (1 + dev["similarity"]) / 2) / 3
        assert ours == pytest.approx(published.overall, abs=0.0015), name
        checked += 1
    assert checked > 40


def test_names_that_are_near() -> None:
    with pytest.raises(UserError, match="did you mean '4-sft-smart'"):
        find_shipped("4-sft-smrt")


def test_ids_can_be_typed() -> None:
    assert all(re.fullmatch(r"[A-Za-z0-9.-]+", name) for name in library())
