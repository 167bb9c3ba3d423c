"""Records: frozen dataclasses that are written as JSON and read back. The one place that knows how."""

import json
import math
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from weft.foundation.content import Content
from weft.foundation.errors import UserError

IF_ANY = {"if any": True}
"""Metadata of a field that is left out of the file while it is empty."""
Read = TypeVar("Read")


@dataclass(frozen=True)
class JsonRecord:
    """Base of the dataclasses that are written. The order of the fields is the order of the keys."""

    def plain(self) -> Content:
        """Dictionaries, lists and single values; an undefined number is NaN, as it is in the record."""
        own = [(field, getattr(self, field.name)) for field in fields(self)]
        return {field.name: _plain(value) for field, value in own if value or "if any" not in field.metadata}


def to_json(value: Any, indent: int | None = None) -> str:
    """Records and plain values as JSON. JSON has no NaN: an undefined number is null."""
    return json.dumps(without_nan(_plain(value)), indent=indent, allow_nan=False)


def from_json(kind: type[Read], content: Any, where: str) -> Read:
    """The record that plain content says; keys that it does not know are left out, missing ones have their defaults."""
    described: Any = kind  # mypy takes no class for hashable
    try:
        read: Read = _adapter(described).validate_python(content)
    except ValidationError as error:
        found = error.errors()[0]
        place = ".".join(map(str, found["loc"]))
        raise UserError(f"{where}: is damaged ({place or 'all of it'}: {found['msg']})") from None
    return read


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _plain(value: Any) -> Any:
    if isinstance(value, JsonRecord):
        return value.plain()
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value


def without_nan(value: Any) -> Any:
    """Plain values with None for every undefined number."""
    if isinstance(value, dict):
        return {key: without_nan(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
