"""Starts several workers behind one port, replaces those that die, and stops them all. It loads no model itself."""

import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from weft.foundation.errors import Interrupted, RunError, UserError
from weft.serving.job import ServerJob
from weft.serving.log import log
from weft.serving.worker import work

FAILURES = 3
"""Starts in a row that a worker may fail before the server gives up."""
MARGIN = 10.0
"""Seconds beyond the settings' own timeouts before a worker that does not stop is killed."""


@dataclass(eq=False)
class ServingWorker:
    """A worker process and its connection."""

    number: int
    process: BaseProcess
    line: Connection
    ready: bool = False


@dataclass
class Scrape:
    """A request for the metrics of all workers, under way."""

    asker: ServingWorker
    number: int
    """the asker's number of the request"""
    missing: set[int]
    """numbers of the workers that have not answered"""
    pages: list[bytes] = field(default_factory=list)


class Supervisor:
    """Owns the workers. Everything happens in `run`, in one thread."""

    def __init__(self, job: ServerJob, started_up: Callable[[], None]) -> None:
        """`started_up` is called once, when all workers accept requests."""
        self.job = job
        self.started_up = started_up
        self.workers: dict[int, ServingWorker] = {}
        self.failures = dict.fromkeys(range(job.workers), 0)
        """starts in a row that failed, by the worker's number"""
        self.due: dict[int, float] = {}
        """when to start a worker that is not running"""
        self.reason = ""
        """message of the last worker that could not start"""
        self.scrapes: dict[int, Scrape] = {}
        self.scraped = 0
        self.stopping: int | None = None
        """signal that ends the server"""

    def run(self) -> None:
        """Serve until SIGTERM or Ctrl-C. Raises UserError if the first worker cannot start."""
        announced = False
        with self._signals() as wake:
            try:
                self._start(0)  # alone: what it finds wrong is reported once
                while self.stopping is None:
                    self._step(wake)
                    if not announced and self._all_ready():
                        self.started_up()
                        announced = True
            finally:
                self._stop()
        if self.stopping == signal.SIGINT:
            raise Interrupted

    def _all_ready(self) -> bool:
        return len(self.workers) == self.job.workers and all(worker.ready for worker in self.workers.values())

    def _start(self, number: int) -> None:
        self.due.pop(number, None)
        context = get_context("spawn")  # a worker of its own memory, whose libraries start their own threads
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(self.job, theirs), name=f"worker-{number}")
        process.start()
        theirs.close()  # so that the end of the process is the end of the connection
        self.workers[number] = ServingWorker(number, process, ours)
        log("worker_started", worker=number, pid=process.pid)

    def _step(self, wake: socket.socket) -> None:
        """Wait for a message, the end of a worker, a signal, or the time to start a worker again."""
        left = min(self.due.values(), default=time.monotonic() + 60) - time.monotonic()
        lines = {worker.line: worker for worker in self.workers.values()}
        ends = {worker.process.sentinel: worker for worker in self.workers.values()}
        found = wait([wake, *lines, *ends], max(0.0, left))
        if wake in found:
            wake.recv(1024)
        for one in found:
            if isinstance(one, Connection):
                self._hear(lines[one])
        for one in found:
            if isinstance(one, int):
                self._bury(ends[one])
        if self.stopping is None:
            for number in [number for number, at in self.due.items() if at <= time.monotonic()]:
                self._start(number)

    def _hear(self, worker: ServingWorker) -> None:
        try:
            what, *given = worker.line.recv()
        except (EOFError, OSError):
            return  # it ends, and its sentinel tells
        if what == "ready":
            worker.ready = True
            self.failures[worker.number] = 0
            if worker.number == 0:
                self.due |= {n: 0.0 for n in range(self.job.workers) if n not in self.workers and n not in self.due}
        elif what == "failed":
            self.reason = given[0]
        elif what == "metrics":
            self._scrape(worker, given[0])
        elif what == "page" and (scrape := self.scrapes.get(given[0])):
            scrape.pages.append(given[1])
            self._gave(given[0], worker.number)

    def _bury(self, worker: ServingWorker) -> None:
        """Remove a worker that has ended and plan its replacement."""
        while worker.line.poll():  # what it said last
            try:
                what, *given = worker.line.recv()
            except (EOFError, OSError):
                break
            self.reason = given[0] if what == "failed" else self.reason
        worker.process.join()
        worker.line.close()
        del self.workers[worker.number]
        for key in list(self.scrapes):
            self._gave(key, worker.number)
        log("worker_ended", worker=worker.number, pid=worker.process.pid, code=worker.process.exitcode)
        if self.stopping is not None:
            return
        failures = self.failures[worker.number] = 0 if worker.ready else self.failures[worker.number] + 1
        if self.reason and not any(other.ready for other in self.workers.values()):
            raise UserError(self.reason)
        if failures >= FAILURES:
            told = self.reason or f"exit code {worker.process.exitcode}; is there enough memory for another worker?"
            raise RunError(f"worker {worker.number} could not start {failures} times in a row: {told}")
        self.due[worker.number] = time.monotonic() + (2.0 ** (failures - 1) if failures else 0.0)

    def _scrape(self, asker: ServingWorker, number: int) -> None:
        """Ask all workers for their metrics."""
        self.scraped += 1
        able = [worker for worker in self.workers.values() if worker.ready]
        self.scrapes[self.scraped] = Scrape(asker, number, {worker.number for worker in able})
        for worker in able:
            _send(worker, "page", self.scraped)

    def _gave(self, key: int, number: int) -> None:
        """Note that a worker has given its page, or never will; the last one completes the answer."""
        scrape = self.scrapes[key]
        scrape.missing.discard(number)
        if not scrape.missing:
            del self.scrapes[key]
            _send(scrape.asker, "pages", scrape.number, [page for page in scrape.pages if page])

    def _stop(self) -> None:
        """Stop all workers gracefully; kill those that do not end in time."""
        self.stopping = self.stopping or signal.SIGTERM
        for worker in self.workers.values():
            worker.process.terminate()
        settings = self.job.settings
        end = time.monotonic() + settings.drain_seconds + settings.finish_seconds + MARGIN
        for worker in list(self.workers.values()):
            worker.process.join(max(0.0, end - time.monotonic()))
            if worker.process.is_alive():
                worker.process.kill()
            self._bury(worker)

    @contextmanager
    def _signals(self) -> Iterator[socket.socket]:
        """Note SIGTERM and SIGINT, and yield a socket that becomes readable at every signal."""
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)

        def note(number: int, _: Any) -> None:
            self.stopping = self.stopping or number

        before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
        wakeup = signal.set_wakeup_fd(theirs.fileno())
        try:
            yield ours
        finally:
            signal.set_wakeup_fd(wakeup)
            for number, handler in before.items():
                signal.signal(number, handler)
            ours.close()
            theirs.close()


def _send(worker: ServingWorker, *message: Any) -> None:
    with suppress(OSError):  # it has just ended
        worker.line.send(message)
