"""The queue: chooses which rows of which requests share the next pass. Independent of threads, models and HTTP.

A request is split into pieces of at most a quarter of a pass. A pass takes a piece of the oldest request, so that every
request is eventually answered; then the requests of one piece in the order of their arrival; then one piece of each
other request, those with the fewest tokens first; then further pieces as long as they fit. Requests of several pieces
fill a pass only while it stays short. So small requests never wait for large ones, for any number of large ones, and
under load no small request waits much longer than another.
"""

from asyncio import Future
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil, inf

import numpy as np

from weft.inference.joint import Ask, Values

PIECES = 4
"""Pieces of maximum size per pass: a piece of a large request leaves capacity for small ones."""


@dataclass(frozen=True)
class Piece:
    """Rows of one request that are always processed in the same pass."""

    asks: tuple[Ask, ...]
    tokens: int
    start: int = 0
    """number of its first row in the request"""


def row_tokens(asks: Sequence[Ask]) -> list[int]:
    """Tokens of every row; a sequence that several tasks read counts once. All asks have the same rows."""
    counts = []
    for i in range(len(asks[0].rows)):
        distinct = {sequence.key: len(sequence.ids) for ask in asks for sequence in ask.rows[i]}
        counts.append(sum(distinct.values()))
    return counts


def spans(sizes: Sequence[int], limit: int) -> Iterator[tuple[slice, int]]:
    """Yield slices of consecutive rows whose sizes sum to at most `limit`, at least one row each, and the sum.

    With a limit of 0, all rows are one slice.
    """
    start = total = 0
    for end, size in enumerate(sizes):
        if limit and end > start and total + size > limit:
            yield slice(start, end), total
            start, total = end, 0
        total += size
    yield slice(start, len(sizes)), total


def cut(asks: Sequence[Ask], limit: int) -> Iterator[Piece]:
    """Split a request into pieces for passes of at most `limit` tokens; one piece if the limit is 0."""
    for rows, tokens in spans(row_tokens(asks), ceil(limit / PIECES)):
        yield Piece(tuple(Ask(ask.task, ask.rows[rows], ask.vectors) for ask in asks), tokens, rows.start)


@dataclass(eq=False)
class QueuedJob:
    """One request: its pending pieces and the values so far."""

    pieces: deque[Piece]
    answer: "Future[list[Values]]"
    """values of each ask; cancelled when the client disconnects"""
    since: float = 0.0
    """arrival time"""
    found: dict[int, list[Values]] = field(default_factory=dict)
    """start of a finished piece -> values of each ask"""

    def __post_init__(self) -> None:
        self.count = len(self.pieces)

    @property
    def tokens(self) -> int:
        """number of pending tokens"""
        return sum(piece.tokens for piece in self.pieces)

    def deliver(self, piece: Piece, values: "list[Values] | Exception") -> None:
        """Add the values of a finished piece; the last one to finish, or the first failure, completes the answer."""
        if self.answer.done():
            return
        if isinstance(values, Exception):
            self.answer.set_exception(values)
            return
        self.found[piece.start] = values
        if len(self.found) == self.count:
            in_order = [self.found[start] for start in sorted(self.found)]
            self.answer.set_result([np.concatenate(pieces) for pieces in zip(*in_order, strict=True)])


class Waiting:
    """The queued requests."""

    def __init__(self, limit: int) -> None:
        """`limit` is the maximum number of tokens in a pass; 0 means one request per pass."""
        self.limit = limit
        self.jobs: list[QueuedJob] = []
        self.tokens = 0

    def put(self, job: QueuedJob) -> None:
        self.jobs.append(job)
        self.tokens += job.tokens

    @property
    def is_full(self) -> bool:
        """Whether the queue has enough tokens for a full pass."""
        return bool(self.jobs) and self.tokens >= self.limit

    def forget(self) -> None:
        """Remove cancelled requests and those without pending pieces."""
        self.jobs = [job for job in self.jobs if job.pieces and not job.answer.done()]
        self.tokens = sum(job.tokens for job in self.jobs)

    def take(self, short: float = inf) -> list[tuple[QueuedJob, Piece]]:
        """Take the pieces of the next pass; a pass of up to `short` tokens is short."""
        self.forget()
        taken: list[tuple[QueuedJob, Piece]] = []
        total = 0
        in_turn = self.jobs[:1] + sorted(self.jobs[1:], key=_turn)
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


def _turn(job: QueuedJob) -> int:
    """Sort key: requests of one piece keep their order, before all others."""
    return 0 if job.count == 1 else job.tokens
