import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.foundation.content import Content, put, toml_text


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("a", {"a": 9, "t": {"x": {"n": 1}, "y": {}}}),
        ("b.c", {"a": "old", "t": {"x": {"n": 1}, "y": {}}, "b": {"c": 9}}),
        ("a.c", {"a": {"name": "old", "c": 9}, "t": {"x": {"n": 1}, "y": {}}}),
        ("t.*.n", {"a": "old", "t": {"x": {"n": 9}, "y": {"n": 9}}}),
    ],
)
def test_put(key: str, expected: Content) -> None:
    content: Content = {"a": "old", "t": {"x": {"n": 1}, "y": {}}}
    put(content, key, 9)
    assert content == expected


def test_a_single_number_has_no_keys_inside() -> None:
    with pytest.raises(ValueError, match="n is a single value"):
        put({"n": 3}, "n.x", 1)


keys = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=8)
values = st.recursive(
    st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False, allow_infinity=False) | keys,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.from_regex("[a-z]{1,5}", fullmatch=True), st.dictionaries(keys, values), max_size=3))
def test_what_is_written_reads_back(tasks: dict[str, Content]) -> None:
    content: Content = {"name": "x", "tasks": tasks or {"a": {"b": 1}}, "optimizer": {"lr": 1e-5}}
    assert tomllib.loads(toml_text(content)) == content
