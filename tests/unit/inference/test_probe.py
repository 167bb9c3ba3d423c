"""Swapping gendered words."""

import pytest

from weft.inference.probe import SWAPS, swap


@pytest.mark.parametrize(
    ("text", "swapped"),
    [
        ("She lost her keys.", "He lost his keys."),
        ("I saw her.", "I saw him."),
        ("HE SAID SO", "SHE SAID SO"),
        ("His wife and her husband", "Her husband and his wife"),
        ("the actress, himself", "the actor, herself"),
        ("The weather is fine; others sheltered there.", "The weather is fine; others sheltered there."),
        ("", ""),
    ],
)
def test_swap(text: str, swapped: str) -> None:
    assert swap(text) == swapped


def test_every_pair_leads_back() -> None:
    """Except where English has one word for two: her, and ms and mum, which have no counterpart of their own."""
    odd = {"his", "him", "hers", "ms", "mum"}
    assert [word for word, other in SWAPS.items() if word not in odd and SWAPS[other] != word] == []
