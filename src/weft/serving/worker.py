"""One of several processes that serve a model behind the same port."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from weft.foundation.errors import Interrupted, UserError
from weft.serving.job import ServerJob

GATHER = 2.0
"""Seconds to wait for the metrics of the other workers."""


class WorkerLine:
    """A worker's connection to its supervisor. If the supervisor dies, the worker shuts down as on SIGTERM."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.sending = threading.Lock()
        self.page: Callable[[], bytes] | None = None
        """the metrics of this worker; None until it serves"""
        self.waiting: dict[int, tuple[asyncio.AbstractEventLoop, asyncio.Future[list[bytes]]]] = {}
        self.asked = 0
        threading.Thread(target=self._listen, name="supervisor", daemon=True).start()

    def send(self, *message: Any) -> None:
        with self.sending:
            self.connection.send(message)

    async def pages(self) -> list[bytes]:
        """Return the metrics of all workers; those of this worker alone if the others do not answer in time."""
        loop = asyncio.get_running_loop()
        self.asked += 1
        number, answer = self.asked, loop.create_future()
        self.waiting[number] = loop, answer
        try:
            self.send("metrics", number)
            return await asyncio.wait_for(answer, GATHER)
        except (TimeoutError, OSError):
            return [self.page()] if self.page else []
        finally:
            del self.waiting[number]

    def _listen(self) -> None:
        try:
            while True:
                what, *given = self.connection.recv()
                if what == "page":
                    self.send("page", given[0], self.page() if self.page else b"")
                elif found := self.waiting.get(given[0]):
                    loop, answer = found
                    loop.call_soon_threadsafe(_complete, answer, given[1])
        except (EOFError, OSError):
            os.kill(os.getpid(), signal.SIGTERM)


def _complete(answer: "asyncio.Future[list[bytes]]", pages: list[bytes]) -> None:
    if not answer.done():
        answer.set_result(pages)


def work(job: ServerJob, connection: Connection) -> None:
    """Serve until SIGTERM, in a process of its own; report readiness or the error to the supervisor."""
    os.setpgid(0, 0)  # Ctrl-C reaches only the supervisor, which then stops its workers
    line = WorkerLine(connection)
    try:
        import torch

        from weft.serving.listening import open_socket
        from weft.serving.server import serve_job

        torch.set_num_threads(max(1, torch.get_num_threads() // job.workers))
        listener = open_socket(job.host, job.port, shared=True)
        serve_job(job, listener, lambda _: line.send("ready"), line)
    except Interrupted:
        pass
    except UserError as error:
        line.send("failed", str(error))
