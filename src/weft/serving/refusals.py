"""Error responses, all in OpenAI's format, because its clients show the message."""

from typing import Any

from pydantic_core import to_json
from starlette.responses import Response


class Refusal(Exception):
    """An error response: what was found, what is allowed."""

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
    """Build the response to an internal error; it contains only the request id."""
    return Refusal(500, f"internal server error; the server's log has details of request {request}", "failure")


class ClientGone(Exception):
    """The client disconnected before the answer."""


def json_response(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(to_json(content), status, headers, media_type="application/json")
