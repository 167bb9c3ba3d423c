"""Requests that are not answered: one shape for all of them, that of OpenAI, because its clients show the message."""

from typing import Any

from pydantic_core import to_json
from starlette.responses import Response


class Refusal(Exception):
    """A clear no: what was found, what is allowed."""

    def __init__(
        self, status: int, message: str, code: str, *, param: str | None = None, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.headers = headers or {}

    def response(self) -> Response:
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        error = {"message": self.message, "type": kind, "param": self.param, "code": self.code}
        return json_response({"error": error}, self.status, self.headers)


def failure(request: str) -> Refusal:
    """What a client is told of a bug of ours: nothing but where to look."""
    return Refusal(500, f"the server failed; its log knows more of request {request}", "failure")


class ClientGone(Exception):
    """Nobody is left to answer."""


def json_response(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(to_json(content), status, headers, media_type="application/json")
