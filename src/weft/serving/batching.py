"""Batches requests of all clients: a few threads run the passes of the engine."""

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
"""Tokens per second, the initial estimate of the speed of a pass."""
PARALLEL = 4
"""Maximum number of passes at the same time; more would leave a single request too few of many cores."""
LOOK = 0.2
"""Fraction of `max_wait`: if no request arrives for this long, the pass starts early."""

SHORT = 0.25
"""Seconds of a pass. Large requests do not fill a pass beyond that, because new requests wait for its end."""


class Counts(Protocol):
    """Receives the size of every pass."""

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
        self.turn = threading.Lock()
        """held by the thread that composes the next pass"""
        self.closing = False
        self.speed = SPEED
        # without batching, requests are processed one after the other, each with all cores
        count = engine.run_in_parallel(PARALLEL) if settings.batch_tokens else 1
        self.threads = [threading.Thread(target=self._work, name=f"engine-{i}") for i in range(count)]
        for thread in self.threads:
            thread.start()

    def ask(self, pieces: Sequence[Piece]) -> "asyncio.Future[list[Values]]":
        """Add a request to the queue; cancel the returned future to remove it. Raises a 429 if the queue is full."""
        job = QueuedJob(deque(pieces), self.loop.create_future(), time.monotonic())
        with self.changed:
            self.waiting.forget()  # disconnected clients take no capacity
            waiting = self.waiting.tokens
            if not fits(job.tokens, waiting, self.settings.queue_tokens):
                seconds = max(1, ceil(waiting / (self.speed * len(self.threads))))
                raise full(job.tokens, waiting, self.settings.queue_tokens, "tokens", seconds)
            self.waiting.put(job)
            self.changed.notify()
        return job.answer

    def close(self) -> None:
        """Finish all queued requests, then stop."""
        with self.changed:
            self.closing = True
            self.changed.notify()
        for thread in self.threads:
            thread.join()

    def _work(self) -> None:
        while batch := self._next():
            start = time.monotonic()
            values = self._values([piece for _, piece in batch])
            tokens, seconds = sum(piece.tokens for _, piece in batch), time.monotonic() - start
            with self.changed:
                self.speed += 0.1 * (tokens / max(seconds, 1e-6) - self.speed)
                self.counts.passed(len(batch), tokens)
            self.loop.call_soon_threadsafe(_deliver, batch, values)

    def _next(self) -> list[tuple[QueuedJob, Piece]]:
        """Wait for the pieces of the next pass; empty when the queue is closed."""
        with self.turn, self.changed:
            while True:
                self.changed.wait_for(lambda: self.waiting.jobs or self.closing)
                if not self.waiting.jobs:
                    return []
                self._wait_for_company()
                if taken := self.waiting.take(SHORT * self.speed):
                    return taken

    def _wait_for_company(self) -> None:
        """Wait while requests keep arriving, until the pass is full or its oldest request has waited `max_wait`."""
        longest = self.settings.max_wait if self.settings.batch_tokens else 0.0
        end = self.waiting.jobs[0].since + longest
        while not (self.closing or self.waiting.is_full):
            left = min(end - time.monotonic(), LOOK * longest)
            if left <= 0 or not self.changed.wait(left):
                return

    def _values(self, pieces: Sequence[Piece]) -> list[list[Values] | Exception]:
        """Compute the outputs of each piece. If the pass fails, each piece runs alone, so that only the cause fails."""
        try:
            found = iter(self.engine.together([ask for piece in pieces for ask in piece.asks]))
            return [[next(found) for _ in piece.asks] for piece in pieces]
        except Exception as error:
            if len(pieces) == 1:
                return [error]
            return [result for piece in pieces for result in self._values([piece])]


def _deliver(batch: Sequence[tuple[QueuedJob, Piece]], values: Sequence[list[Values] | Exception]) -> None:
    for (job, piece), own in zip(batch, values, strict=True):
        job.deliver(piece, own)
