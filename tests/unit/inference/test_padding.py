"""Padded groups cost as little as any other division of the sequences."""

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from weft.inference.padding import padded_groups

LENGTHS = st.lists(st.integers(1, 60), max_size=9)


def cost(groups: list[list[int]], overhead: int) -> int:
    """Padded size and overhead of groups of lengths."""
    return sum(len(group) * max(group) + overhead for group in groups)


def divisions(lengths: list[int]) -> list[list[list[int]]]:
    """All ways to cut the sorted lengths into groups."""
    inner = range(1, len(lengths))
    found = []
    for count in range(len(lengths)):
        for cuts in combinations(inner, count):
            ends = [0, *cuts, len(lengths)]
            found.append([lengths[a:b] for a, b in pairwise(ends)])
    return found


@given(LENGTHS, st.integers(1, 120), st.integers(0, 40))
def test_no_other_cuts_cost_less(lengths: list[int], tokens: int, overhead: int) -> None:
    groups = [[lengths[i] for i in group] for group in padded_groups(lengths, tokens, overhead)]
    allowed = [
        own
        for own in divisions(sorted(lengths))
        if all(len(group) == 1 or len(group) * max(group) <= tokens for group in own)
    ]
    assert cost(groups, overhead) == min((cost(own, overhead) for own in allowed), default=0)


@given(LENGTHS, st.integers(1, 120))
def test_every_sequence_is_in_one_group_within_the_budget(lengths: list[int], tokens: int) -> None:
    groups = padded_groups(lengths, tokens)
    assert sorted(i for group in groups for i in group) == list(range(len(lengths)))
    for group in groups:
        assert len(group) == 1 or len(group) * max(lengths[i] for i in group) <= tokens


def test_few_long_texts_do_not_pad_many_short_ones() -> None:
    lengths = [100, *[8] * 50, 90]
    assert sorted(map(len, padded_groups(lengths))) == [2, 50]
