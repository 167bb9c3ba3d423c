"""What `weft check` says about rows that lose tokens."""

from pathlib import Path
from typing import Any

from tests.tiny import recipe_content, write_rows
from weft.build import assemble
from weft.recipes.check import examine
from weft.recipes.recipe import parse_recipe


def cuts(tiny: Path, words: list[int], max_length: int, **own: Any) -> list[str]:
    """Texts of so many words, each a token."""
    rows = [{"text": " ".join(["film"] * count), "b": "cat", "label": i % 2} for i, count in enumerate(words)]
    file = str(write_rows(tiny / "cuts.tsv", rows))
    content = recipe_content(tiny, epochs=1, max_length=max_length)
    data = {"train": file, "dev": file, "text": "text", "label": "label"} | ({"text2": "b"} if "reading" in own else {})
    content["tasks"] = {"mood": {"kind": "classification", "data": data} | own}
    return examine(assemble(parse_recipe(content, "cuts"), device="cpu")).cuts


def test_windows_and_a_larger_max_length_have_a_price(tiny: Path) -> None:
    (said,) = cuts(tiny, [5, 14, 20, 70], 16)
    # 7 + 3 x 16 tokens are read now. Windows share 3 of 14 tokens: 20 words are two of (20 + 3) / 2 -> 12, 70 are seven
    # of (70 + 18) / 7 -> 13, each with two special tokens. The body has 64 positions.
    assert said == (
        'mood: 2 of 4 train rows lose tokens (max_length = 16, long_texts = "truncate"). One pass over the train rows '
        'reads 55 tokens; with long_texts = "windows": 156 (2.8 x); with max_length = 64: 109 (2.0 x, 1 still cut)'
    )


def test_more_windows_where_eight_are_too_few(tiny: Path) -> None:
    (said,) = cuts(tiny, [5, 200], 16, long_texts="windows")
    assert 'with long_texts = { name = "windows", most = 18 }: ' in said


def test_a_pair_in_one_sequence_has_no_windows(tiny: Path) -> None:
    (said,) = cuts(tiny, [5, 30], 16, reading="cross")
    assert said.endswith("reads 25 tokens; with max_length = 34: 43 (1.7 x)")
    (said,) = cuts(tiny, [5, 90], 64, reading="cross")
    assert said.endswith("the body has 64 positions, so max_length cannot be larger")


def test_nothing_is_said_of_texts_that_fit(tiny: Path) -> None:
    assert cuts(tiny, [5, 14], 16) == []
    assert cuts(tiny, [5, 60], 16, long_texts="windows") == []
