"""Records: frozen dataclasses that are written to and read from JSON."""

import json
import math
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from weft.foundation.content import Content
from weft.foundation.errors import UserError

IF_ANY = {"if any": True}
"""Metadata of a field that is omitted from the file if it is empty."""
Read = TypeVar("Read")


@dataclass(frozen=True)
class JsonRecord:
    """Base of all records. The order of the fields is the order of the keys."""

    def plain(self) -> Content:
        """Convert to dictionaries, lists and single values; undefined numbers stay NaN."""
        own = [(field, getattr(self, field.name)) for field in fields(self)]
        return {field.name: _plain(value) for field, value in own if value or "if any" not in field.metadata}


def to_json(value: Any, indent: int | None = None) -> str:
    """Serialize records and plain values. JSON has no NaN: an undefined number becomes null."""
    return json.dumps(without_nan(_plain(value)), indent=indent, allow_nan=False)


def from_json(kind: type[Read], content: Any, where: str) -> Read:
    """Validate plain content as a record; unknown keys are ignored, missing ones get their defaults."""
    described: Any = kind  # mypy does not accept a class as hashable
    try:
        read: Read = _adapter(described).validate_python(content)
    except ValidationError as error:
        found = error.errors()[0]
        place = ".".join(map(str, found["loc"]))
        raise UserError(f"{where}: is damaged ({place or 'whole content'}: {found['msg']})") from None
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
    """Replace every non-finite number by None."""
    if isinstance(value, dict):
        return {key: without_nan(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
