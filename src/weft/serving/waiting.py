"""Which rows of which requests share the next pass. Knows nothing of threads, models or HTTP.

A request is cut into pieces of at most a quarter of a pass. A pass takes a piece of the oldest request, so that every
request is answered in the end; then of the others, those with the fewest tokens first; then further pieces, as long as
they fit. Requests of several pieces fill a pass only as far as it stays short. So small requests never wait for large
ones, however many of those there are.
"""

from asyncio import Future
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil, inf

import numpy as np

from weft.inference.joint import Ask, Values

PIECES = 4
"""into which a pass can be shared: a piece of a large request leaves room for small ones"""


@dataclass(frozen=True)
class Piece:
    """Rows of one request that are never parted."""

    asks: tuple[Ask, ...]
    tokens: int


def row_tokens(asks: Sequence[Ask]) -> list[int]:
    """Tokens of every row, counted once where several tasks read the same sequence. All asks have the same rows."""
    counts = []
    for i in range(len(asks[0].rows)):
        distinct = {(ids.tobytes(), second): len(ids) for ask in asks for ids, second in ask.rows[i]}
        counts.append(sum(distinct.values()))
    return counts


def spans(sizes: Sequence[int], limit: int) -> Iterator[tuple[slice, int]]:
    """Consecutive rows whose sizes sum to at most `limit`, but one at least, and the sum; all if the limit is 0."""
    start = total = 0
    for end, size in enumerate(sizes):
        if limit and end > start and total + size > limit:
            yield slice(start, end), total
            start, total = end, 0
        total += size
    yield slice(start, len(sizes)), total


def cut(asks: Sequence[Ask], limit: int) -> Iterator[Piece]:
    """Pieces for passes of at most `limit` tokens; everything in one if there is no limit (0)."""
    for rows, tokens in spans(row_tokens(asks), ceil(limit / PIECES)):
        yield Piece(tuple(Ask(ask.task, ask.rows[rows], ask.vectors) for ask in asks), tokens)


@dataclass(eq=False)
class QueuedJob:
    """One request: what is still to be done, and what has been found."""

    pieces: deque[Piece]
    answer: "Future[list[Values]]"
    """the values of each ask; cancelled when the client has gone"""
    since: float = 0.0
    """when it came"""
    found: list[list[Values]] = field(default_factory=list)
    """the values of each ask, for each piece that is done"""

    def __post_init__(self) -> None:
        self.count = len(self.pieces)

    @property
    def tokens(self) -> int:
        """that still wait"""
        return sum(piece.tokens for piece in self.pieces)

    def deliver(self, values: "list[Values] | Exception") -> None:
        """A piece is done; with the last one the request is answered, and with the first failure too."""
        if self.answer.done():
            return
        if isinstance(values, Exception):
            self.answer.set_exception(values)
            return
        self.found.append(values)
        if len(self.found) == self.count:
            self.answer.set_result([np.concatenate(pieces) for pieces in zip(*self.found, strict=True)])


class Waiting:
    """The requests that wait."""

    def __init__(self, limit: int) -> None:
        """`limit` tokens in a pass; 0 for one request in each."""
        self.limit = limit
        self.jobs: list[QueuedJob] = []
        self.tokens = 0

    def put(self, job: QueuedJob) -> None:
        self.jobs.append(job)
        self.tokens += job.tokens

    @property
    def is_full(self) -> bool:
        """Whether a pass could not take more than what is here."""
        return bool(self.jobs) and self.tokens >= self.limit

    def forget(self) -> None:
        """Leave out requests that were given up, and those that have nothing left to compute."""
        self.jobs = [job for job in self.jobs if job.pieces and not job.answer.done()]
        self.tokens = sum(job.tokens for job in self.jobs)

    def take(self, short: float = inf) -> list[tuple[QueuedJob, Piece]]:
        """The pieces of the next pass; a pass of up to `short` tokens is short."""
        self.forget()
        taken: list[tuple[QueuedJob, Piece]] = []
        total = 0
        in_turn = self.jobs[:1] + sorted(self.jobs[1:], key=lambda job: job.tokens)
        while in_turn:
            further = []
            for job in in_turn:
                room = self.limit if job.count == 1 else min(self.limit, short)
                if taken and total + job.pieces[0].tokens > room:
                    continue  # a smaller piece of another request may fit
                taken.append((job, job.pieces.popleft()))
                total += taken[-1][1].tokens
                if job.pieces:
                    further.append(job)
            in_turn = further
        self.forget()
        return taken
