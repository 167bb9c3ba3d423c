"""Which rows of which requests share the next pass. Knows nothing of threads, models or HTTP.

A request is cut into pieces of at most so many tokens. A pass takes one piece of each request, in the order in which
they came, as long as they fit together; a request with more pieces goes to the back. So small requests never wait for
a large one to be done.
"""

from asyncio import Future
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from weft.tasks.together import Ask, Values


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


def cut(asks: Sequence[Ask], limit: int) -> Iterator[Piece]:
    """Pieces of at most `limit` tokens, but of one row at least; everything in one if there is no limit (0)."""
    counts = row_tokens(asks)
    start = total = 0
    for end, count in enumerate(counts):
        if limit and end > start and total + count > limit:
            yield Piece(_rows(asks, start, end), total)
            start, total = end, 0
        total += count
    yield Piece(_rows(asks, start, len(counts)), total)


def _rows(asks: Sequence[Ask], start: int, end: int) -> tuple[Ask, ...]:
    return tuple(Ask(ask.task, ask.rows[start:end], ask.vectors) for ask in asks)


@dataclass(eq=False)
class Job:
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
        self.jobs: deque[Job] = deque()
        self.tokens = 0

    def put(self, job: Job) -> None:
        self.jobs.append(job)
        self.tokens += job.tokens

    @property
    def is_full(self) -> bool:
        """Whether a pass could not take more than what is here."""
        return bool(self.jobs) and self.tokens >= self.limit

    def take(self) -> list[tuple[Job, Piece]]:
        """The pieces of the next pass; requests that were given up are left out for good."""
        taken: list[tuple[Job, Piece]] = []
        total = 0
        for _ in range(len(self.jobs)):
            job = self.jobs[0]
            if job.answer.done():
                self.tokens -= job.tokens
                self.jobs.popleft()
                continue
            piece = job.pieces[0]
            if taken and total + piece.tokens > self.limit:
                break
            taken.append((job, job.pieces.popleft()))
            total += piece.tokens
            self.tokens -= piece.tokens
            self.jobs.popleft()
            if job.pieces:
                self.jobs.append(job)
        return taken
