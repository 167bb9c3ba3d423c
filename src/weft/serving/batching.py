"""One thread owns the engine; requests of all clients join in its passes."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Sequence
from math import ceil
from typing import Protocol

from weft.inference.engine import Engine
from weft.inference.joint import Values
from weft.serving.admission import fits, full
from weft.serving.settings import ServerSettings
from weft.serving.waiting import Piece, QueuedJob, Waiting

SPEED = 2000.0
"""tokens a second, for the first guess of how long tokens take"""
LOOK = 0.2
"""of the longest wait: when nobody has come for so long, a pass starts early"""

SHORT = 0.25
"""seconds of a pass: beyond that, large requests do not fill it up, because whoever comes next waits for its end"""


class Counts(Protocol):
    """Who wants to know of passes."""

    def passed(self, requests: int, tokens: int) -> None: ...


class Batcher:
    """The queue in front of an engine. `ask` is called on the event loop, which never waits for the engine."""

    def __init__(self, engine: Engine, settings: ServerSettings, counts: Counts) -> None:
        self.engine = engine
        self.settings = settings
        self.counts = counts
        self.loop = asyncio.get_running_loop()
        self.waiting = Waiting(settings.batch_tokens)
        self.changed = threading.Condition()
        self.closing = False
        self.speed = SPEED
        self.thread = threading.Thread(target=self._work, name="engine")
        self.thread.start()

    def ask(self, pieces: Sequence[Piece]) -> "asyncio.Future[list[Values]]":
        """Join the queue. Cancel the answer to leave it. A queue without room for it raises a 429."""
        job = QueuedJob(deque(pieces), self.loop.create_future(), time.monotonic())
        with self.changed:
            self.waiting.forget()  # clients that have gone take no room
            waiting = self.waiting.tokens
            if not fits(job.tokens, waiting, self.settings.queue_tokens):
                seconds = max(1, ceil(waiting / self.speed))
                raise full(job.tokens, waiting, self.settings.queue_tokens, "tokens", seconds)
            self.waiting.put(job)
            self.changed.notify()
        return job.answer

    def close(self) -> None:
        """Finish what waits, then stop."""
        with self.changed:
            self.closing = True
            self.changed.notify()
        self.thread.join()

    def _work(self) -> None:
        while batch := self._next():
            start = time.monotonic()
            values = self._values([piece for _, piece in batch])
            tokens, seconds = sum(piece.tokens for _, piece in batch), time.monotonic() - start
            self.speed += 0.1 * (tokens / max(seconds, 1e-6) - self.speed)
            self.counts.passed(len(batch), tokens)
            self.loop.call_soon_threadsafe(_deliver, [job for job, _ in batch], values)

    def _next(self) -> list[tuple[QueuedJob, Piece]]:
        """What the next pass computes; nothing when the queue has closed."""
        with self.changed:
            while True:
                self.changed.wait_for(lambda: self.waiting.jobs or self.closing)
                if not self.waiting.jobs:
                    return []
                self._wait_for_company()
                if taken := self.waiting.take(SHORT * self.speed):
                    return taken

    def _wait_for_company(self) -> None:
        """While others keep coming, until a pass is full or its first request has waited long enough."""
        longest = self.settings.max_wait if self.settings.batch_tokens else 0.0
        end = self.waiting.jobs[0].since + longest
        while not (self.closing or self.waiting.is_full):
            left = min(end - time.monotonic(), LOOK * longest)
            if left <= 0 or not self.changed.wait(left):
                return

    def _values(self, pieces: Sequence[Piece]) -> list[list[Values] | Exception]:
        """What the engine finds for each piece. If it fails, each piece alone: none can fail its neighbours."""
        try:
            found = iter(self.engine.together([ask for piece in pieces for ask in piece.asks]))
            return [[next(found) for _ in piece.asks] for piece in pieces]
        except Exception as error:
            if len(pieces) == 1:
                return [error]
            return [result for piece in pieces for result in self._values([piece])]


def _deliver(jobs: Sequence[QueuedJob], values: Sequence[list[Values] | Exception]) -> None:
    for job, own in zip(jobs, values, strict=True):
        job.deliver(own)
