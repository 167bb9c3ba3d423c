"""Bodies that are small in bytes and large in values are rejected before they are built; others are read exactly."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from weft.serving.parsing import parse
from weft.serving.refusals import Refusal
from weft.serving.schemas import EmbeddingsBody, TaskBody, TasksBody
from weft.serving.settings import ServerSettings

KINDS = (TaskBody, TasksBody, EmbeddingsBody)
VALUES = {
    "numbers": b'{"text": "a", "tasks": [' + b"1," * 490_000 + b"1]}",
    "lists": b'{"text": [' + b"[]," * 330_000 + b"1]}",
    "nested lists": b'{"text": [' + b"[[[[[[]]]]]]," * 70_000 + b"1]}",
    "objects": b'{"text": [' + b"{}," * 330_000 + b"1]}",
    "texts": b'{"text": [' + b'"",' * 330_000 + b'""]}',
    "keys": b"{" + b",".join(b'"%d": 0' % i for i in range(80_000)) + b"}",
    "the same key": b"{" + b'"text":[],' * 90_000 + b'"text": "a"}',
    "depth": b"[" * 900_000,
    "open quotes": b'"' * 900_000,
}


@pytest.mark.parametrize("body", VALUES.values(), ids=VALUES)
def test_too_many_values(body: bytes) -> None:
    for kind in KINDS:
        with pytest.raises(Refusal, match="the body has too many values; a request has at most 256 texts") as refusal:
            parse(kind, body, ServerSettings())
        assert refusal.value.status == 400


@pytest.mark.parametrize("unit", [", ", "[", "{", '"', "\\", '\\"', '","', "é", "\n"])
def test_texts_may_look_like_values(unit: str) -> None:
    texts = [(unit * 20_000)[:9_000]] * 40
    assert parse(TaskBody, json.dumps({"text": texts}).encode(), ServerSettings()).text == texts


def test_wrong_names_of_tasks_are_told_once() -> None:
    for tasks, message in (([1] * 200, "tasks.0: Input should be a valid string"), (["a"] * 257, "at most 256 items")):
        with pytest.raises(Refusal, match=message):
            parse(TasksBody, json.dumps({"text": "a", "tasks": tasks}).encode(), ServerSettings())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
FIELDS = st.fixed_dictionaries(
    {}, optional={key: JSON | st.text() for kind in KINDS for key in (*kind.model_fields, "other")}
)


def check(body: bytes) -> None:
    """Whatever pydantic reads is read alike, and everything else is told why not."""
    for kind in KINDS:
        expected: Any = None
        try:
            expected = kind.model_validate_json(body)
        except ValidationError:
            with pytest.raises(Refusal) as refusal:
                parse(kind, body, ServerSettings())
            assert refusal.value.status == 400
        else:
            assert parse(kind, body, ServerSettings()) == expected


@given(FIELDS | JSON)
def test_any_json(content: Any) -> None:
    check(json.dumps(content).encode())


@given(st.binary() | st.text('{}[]",:\\u0dtexasknpm1 ').map(str.encode))
def test_any_bytes(body: bytes) -> None:
    check(body)
