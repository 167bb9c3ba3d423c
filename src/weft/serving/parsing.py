"""Parses request bodies, in a time that is bounded for every content."""

from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import from_json

from weft.serving.refusals import Refusal
from weft.serving.schemas import RequestBody
from weft.serving.settings import ServerSettings

SPARE = 2_000
"""Strings, commas and brackets beyond those of the largest request, so that slightly too many texts are counted."""

B = TypeVar("B", bound=RequestBody)


def parse(kind: type[B], body: bytes, settings: ServerSettings) -> B:
    """Parse a request's body, or raise its first error. Messages quote keys only, never values."""
    _require_few_values(body, settings)
    try:
        content = from_json(body, cache_strings="none")
    except ValueError as error:
        hint = " (is it half of a surrogate pair?)" if "surrogate" in str(error) or "escape" in str(error) else ""
        raise Refusal(400, f"the body is not JSON: {error}{hint}", "invalid_json") from None
    if not isinstance(content, dict):
        raise Refusal(400, "the body: Input should be an object", "invalid_value", param="the body")
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise _first(error, kind) from None


def _require_few_values(body: bytes, settings: ServerSettings) -> None:
    """Reject a body with too many values. A megabyte can hold 300,000 empty lists, half a second to build."""
    most = SPARE + 8 * settings.max_texts  # two lists, each text with a comma, times two as a margin
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside = unescaped.split(b'"', 2 * most)[::2]  # of strings
    marks = len(outside) + sum(part.count(mark) for part in outside for mark in (b",", b"[", b"{"))
    if marks > most:
        message = f"the body has too many values; a request has at most {settings.max_texts:,} texts"
        raise Refusal(400, message, "too_many_values")


def _first(error: ValidationError, kind: type[RequestBody]) -> Refusal:
    first: Any = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])[:100] or "the body"
    reason = str(first["ctx"]["error"]) if first["type"] == "value_error" else first["msg"]
    if first["type"] == "extra_forbidden":
        reason = f"unknown key; expected one of {', '.join(kind.model_fields)}"
    return Refusal(400, f"{where}: {reason}", "invalid_value", param=where)
