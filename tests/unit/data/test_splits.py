from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.tiny import files, recipe_content
from weft.build import assemble
from weft.data.config import DataConfig
from weft.data.splits import fold, split_rows
from weft.recipes.recipe import parse_recipe

texts = st.lists(st.tuples(st.sampled_from("abcdefghijkl"), st.sampled_from("mnopqrstuvw")), min_size=2, max_size=40)


@given(texts, st.floats(0.05, 0.6), st.integers(0, 9))
def test_no_text_stands_on_both_sides_and_no_row_is_lost(
    rows: list[tuple[str, str]], fraction: float, seed: int
) -> None:
    columns = [[a for a, _ in rows], [b.upper() if i % 2 else f" {b}" for i, (_, b) in enumerate(rows)]]
    train, dev = split_rows(columns, fraction, seed)
    assert sorted([*train.tolist(), *dev.tolist()]) == list(range(len(rows)))
    sides = [{fold(column[row]) for column in columns for row in part} for part in (train.tolist(), dev.tolist())]
    assert not sides[0] & sides[1]
    assert len(dev) <= max(1, round(fraction * len(rows)))


def test_the_share_is_met_when_all_texts_differ_and_depends_on_the_seed() -> None:
    columns = [[f"text {i}" for i in range(100)]]
    first = split_rows(columns, 0.2, 1)[1]
    assert len(first) == 20
    assert first.tolist() == split_rows(columns, 0.2, 1)[1].tolist()
    assert first.tolist() != split_rows(columns, 0.2, 2)[1].tolist()


@pytest.mark.parametrize(("dev_seed", "same"), [(None, False), (7, True)])
def test_a_seed_of_their_own_holds_out_the_same_rows_in_every_run(tiny: Path, dev_seed: int | None, same: bool) -> None:
    content = recipe_content(tiny)
    content["tasks"] = {"sentiment": content["tasks"]["sentiment"]}
    data = {"train": files(tiny, "sentiment")["train"], "dev_fraction": 0.3}
    content["tasks"]["sentiment"]["data"] = data | ({} if dev_seed is None else {"dev_seed": dev_seed})
    held = []
    for seed in (1, 2):
        made = assemble(parse_recipe(content | {"seed": seed}, "test"), device="cpu")
        held.append(made.data["sentiment"].dev.rows.tolist())
    assert (held[0] == held[1]) is same


def test_a_seed_of_held_out_rows_needs_some() -> None:
    with pytest.raises(ValidationError, match="`dev_seed` decides which rows `dev_fraction` holds out"):
        DataConfig(train="a.csv", dev="b.csv", dev_seed=1)
