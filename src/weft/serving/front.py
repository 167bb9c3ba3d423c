"""Checks every request before it reaches a route (host, key, size, timeout), and logs it afterwards.

The body is read here in full before it is processed, so a client that sends slowly occupies only its connection.
"""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from weft.serving.admission import Room
from weft.serving.hosts import Hosts
from weft.serving.keys import is_allowed
from weft.serving.log import log, log_failure
from weft.serving.metrics import Metrics
from weft.serving.refusals import ClientGone, Refusal, failure
from weft.serving.settings import ServerSettings

METHODS = ("GET", "HEAD", "POST", "OPTIONS")
OPEN = ("/", "/docs", "/healthz", "/readyz")
GONE = 499
"""Status in the log for a client that disconnected before the answer."""
NO_KEY = Refusal(
    401,
    "this server needs an API key: send the header `Authorization: Bearer KEY`",
    "invalid_api_key",
    headers={"WWW-Authenticate": "Bearer"},
)
TWO_LENGTHS = Refusal(
    400,
    "the length of the body is ambiguous: found Transfer-Encoding with Content-Length or HTTP/1.0",
    "ambiguous_length",
    headers={"Connection": "close"},
)


class Front:
    """An ASGI application around another one."""

    def __init__(
        self, app: ASGIApp, settings: ServerSettings, keys: Sequence[bytes], hosts: Hosts, metrics: Metrics
    ) -> None:
        self.app = app
        self.settings = settings
        self.keys = keys
        self.hosts = hosts
        self.bodies = Room(settings.held_bytes, "bytes")
        self.metrics = metrics
        self.draining = False
        """whether the server is shutting down: every answer closes its connection"""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # lifespan events: startup and shutdown
            await self.app(scope, receive, send)
            return
        start = time.perf_counter()
        request = uuid.uuid4().hex
        scope["state"] = {"id": request, "tokens": 0}
        status = 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *self._headers(request)]
            await send(message)

        try:
            await self._pass(scope, receive, answer)
        except Refusal as refusal:
            await refusal.response()(scope, receive, answer)
        except ClientGone:
            status = GONE
            self.metrics.gone.inc()
        except Exception as error:
            log_failure(error, request)
            if not status:
                await failure(request).response()(scope, receive, answer)
        finally:
            self._write_down(scope, request, status, time.perf_counter() - start)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        self.hosts.check(headers.get(b"host"), headers.get(b"origin"))
        if b"transfer-encoding" in headers and (b"content-length" in headers or scope["http_version"] == "1.0"):
            raise TWO_LENGTHS
        if not _is_open(scope["path"]) and not is_allowed(headers.get(b"authorization"), self.keys):
            raise NO_KEY
        if scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        declared = headers.get(b"content-length", b"")
        size = int(declared) if declared.isdigit() else self.settings.max_body
        if (refusal := self._no_room(size)) is not None:
            if b"expect" not in headers:  # a client that waits for 100 Continue gets the error at once
                await self._read(receive, keep=False)
            raise refusal
        with self.bodies.hold(size):
            body = await self._read(receive, keep=True)
            kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
            if kind != b"application/json" and not kind.endswith(b"+json"):
                raise Refusal(415, "expected the header `Content-Type: application/json`", "unsupported_media_type")
            await self.app(scope, _again(body, receive), send)

    def _no_room(self, size: int) -> Refusal | None:
        """Return the rejection of a body of this size, or None if there is capacity."""
        if size > self.settings.max_body:
            return self._too_large(size)
        return None if self.bodies.fits(size) else self.bodies.full(size)

    async def _read(self, receive: Receive, *, keep: bool) -> bytes:
        """Read a body. A discarded body is also read to its end, because clients read the answer only then."""
        parts: list[bytes] = []
        size = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(self.settings.body_seconds):
                async for part in _parts(receive):
                    size += len(part)
                    if keep and size <= self.settings.max_body:
                        parts.append(part)
                if keep and size > self.settings.max_body:  # chunked encoding does not declare the size
                    raise self._too_large(size)
                return b"".join(parts)
        message = f"the body did not arrive within {self.settings.body_seconds:g} s"
        raise Refusal(408, message, "too_slow", headers={"Connection": "close"})

    def _too_large(self, size: int) -> Refusal:
        message = f"the body has {size:,} bytes, at most {self.settings.max_body:,} are allowed"
        return Refusal(413, message, "body_too_large", headers={"Connection": "close"})

    def _headers(self, request: str) -> list[tuple[bytes, bytes]]:
        headers = [(b"x-request-id", request.encode()), (b"x-content-type-options", b"nosniff")]
        return [*headers, (b"connection", b"close")] if self.draining else headers

    def _write_down(self, scope: Scope, request: str, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in METHODS else "other"
        self.metrics.answered(method, route, status, seconds)
        took = round(1000 * seconds, 1)
        tokens = scope["state"]["tokens"]
        log("request", id=request, method=method, path=route, status=status, ms=took, tokens=tokens)


def _is_open(path: str) -> bool:
    """Whether a path needs no key: the pages, which contain nothing of the model, and the health checks."""
    return path in OPEN or path.startswith("/page/")


async def _parts(receive: Receive) -> AsyncIterator[bytes]:
    """Yield the body as it arrives."""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        yield message.get("body", b"")
        more = message.get("more_body", False)


def _again(body: bytes, receive: Receive) -> Receive:
    """Build a `receive` that returns the body again, then the client's further messages."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again
