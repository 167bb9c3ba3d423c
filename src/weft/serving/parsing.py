"""From a request's bytes to a checked body, in a time that does not depend on what a client makes of its bytes."""

from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import from_json

from weft.serving.refusals import Refusal
from weft.serving.schemas import RequestBody
from weft.serving.settings import ServerSettings

SPARE = 2_000
"""strings, commas and brackets beyond those of the largest request: a little too many texts are still counted"""

B = TypeVar("B", bound=RequestBody)


def parse(kind: type[B], body: bytes, settings: ServerSettings) -> B:
    """A request's body, or the first thing that is wrong with it; nothing of it is quoted but its keys."""
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
    """A megabyte can hold 300,000 empty lists: to build them would stop the server for half a second."""
    most = SPARE + 8 * settings.max_texts  # two lists, each text with a comma, twice that for good measure
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
        reason = f"is no key of this request; it has {', '.join(kind.model_fields)}"
    return Refusal(400, f"{where}: {reason}", "invalid_value", param=where)
