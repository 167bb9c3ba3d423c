"""Runs the server, from an open socket to graceful shutdown after SIGTERM."""

import asyncio
import gc
import signal
import socket
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

import uvicorn

from weft.foundation.errors import Interrupted
from weft.foundation.malloc import give_large_blocks_back, trim
from weft.inference.model import Model, load
from weft.serving.app import Api, build_app
from weft.serving.front import Front
from weft.serving.hosts import Hosts
from weft.serving.job import ServerJob
from weft.serving.log import log, write_all_as_json
from weft.serving.settings import ServerSettings
from weft.serving.worker import WorkerLine

BACKLOG = 2048
KEEP_ALIVE = 75
"""Seconds that a connection may be idle between requests; longer than the usual timeout of proxies."""

TRIM = 100
"""Tenths of a second between two calls of malloc_trim."""

SWITCH = 0.0002
"""Seconds after which a thread that waits for the GIL gets it. The engine's thread releases it in every operation of a
pass: with Python's 5 ms, it would wait for the event loop to finish its work after each of them."""


class Server(uvicorn.Server):
    """uvicorn with a graceful shutdown that drops no request.

    After SIGTERM the server accepts no new connections, except those already in the backlog. It reads from open
    connections for `drain_seconds`, because a request may be in transit; every answer closes its connection. Then idle
    connections are closed and requests in flight are finished.
    """

    def __init__(
        self, config: uvicorn.Config, front: Front, api: Api, settings: ServerSettings, started_up: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self.started_up = started_up
        self.front = front
        self.api = api
        self.settings = settings
        self.interrupted = False
        self.silent: WeakKeyDictionary[object, tuple[Any, float]] = WeakKeyDictionary()
        """last request of each connection, and the time since when it is the last"""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.started_up()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Clear captured signals: uvicorn would raise them again at the end and kill the process."""
        self.interrupted = sig == signal.SIGINT
        super().handle_exit(sig, frame)
        self._captured_signals.clear()

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:
            self._close_silent()
        if counter % TRIM == 0:
            asyncio.get_running_loop().run_in_executor(None, trim)
        return await super().on_tick(counter)

    def _close_silent(self) -> None:
        """Close connections without requests: uvicorn has no timeout for incomplete headers."""
        now = time.monotonic()
        for connection in list(self.server_state.connections):
            cycle: Any = getattr(connection, "cycle", None)  # the last request
            seen, since = self.silent.get(connection, (None, now))
            patience = self.settings.body_seconds + (KEEP_ALIVE if cycle is not None else 0)
            if seen is not cycle or (cycle is not None and not cycle.response_complete):
                self.silent[connection] = cycle, now
            elif now - since > patience:
                connection.transport.close()
            else:
                self.silent[connection] = cycle, since

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        log("draining", connections=len(self.server_state.connections))
        self.front.draining = self.api.draining = True
        for listener in sockets or []:
            await self._stop_listening(listener)
        end = time.monotonic() + self.settings.drain_seconds
        while self.server_state.connections and time.monotonic() < end:
            await asyncio.sleep(0.01)
        await super().shutdown(sockets)
        log("stopped")

    async def _stop_listening(self, listener: socket.socket) -> None:
        """Accept connections that are already in the backlog: closing the socket would reset them."""
        spare = listener.dup()
        spare.setblocking(False)
        for server in self.servers:
            server.close()
        try:
            while True:
                connection, _ = spare.accept()
                await asyncio.get_running_loop().connect_accepted_socket(self._protocol, connection)
        except BlockingIOError:
            spare.close()

    def _protocol(self) -> asyncio.Protocol:
        protocol: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return protocol


def serve_job(
    job: ServerJob,
    listener: socket.socket,
    started_up: Callable[[Model], None],
    line: WorkerLine | None = None,
) -> None:
    """Load a model and serve it until SIGTERM or Ctrl-C; `line` is a worker's connection to its supervisor."""
    hosts = Hosts(listener.getsockname()[0], job.host, job.allowed_hosts)
    model = load(job.folder, job.device, trust_code=job.trust_code)
    if job.workers == 1:  # several share the memory of the weights
        model.engine.favor_small_passes()
    serve(model, listener, job.settings, job.keys, hosts, lambda: started_up(model), line)


def serve(
    model: Model,
    listener: socket.socket,
    settings: ServerSettings,
    keys: tuple[bytes, ...],
    hosts: Hosts,
    started_up: Callable[[], None] = lambda: None,
    line: WorkerLine | None = None,
) -> None:
    """Serve until SIGTERM or Ctrl-C; `started_up` is called when clients can connect."""
    give_large_blocks_back()
    sys.setswitchinterval(SWITCH)
    write_all_as_json()
    front, api = build_app(model, settings, keys, hosts)
    gc.freeze()  # a full collection would look through all objects of the libraries, which takes 150 ms
    if line is not None:
        line.page = api.metrics.page
        api.line = line
    config = uvicorn.Config(
        front,
        http="h11",  # the strictest parser; uvicorn's default depends on what is installed
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=int(settings.finish_seconds),
    )
    server = Server(config, front, api, settings, started_up)
    server.run(sockets=[listener])
    if server.interrupted:
        raise Interrupted
