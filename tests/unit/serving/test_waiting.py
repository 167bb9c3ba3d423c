"""The queue: every request is answered once, in order, none is lost, and passes stay within their limit."""

import asyncio
import threading
from collections import deque
from math import ceil
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.data.readings import TokenSequence
from weft.inference.joint import Ask
from weft.serving.batching import Batcher
from weft.serving.refusals import Refusal
from weft.serving.settings import ServerSettings
from weft.serving.waiting import Piece, QueuedJob, Waiting, cut, row_tokens

REQUESTS = st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=12), min_size=1, max_size=12)
"""for each request the lengths of its rows"""


def rows(lengths: list[int], number: int = 0) -> list[list[TokenSequence]]:
    """Rows of one sequence; what stands in it tells where it came from."""
    return [[TokenSequence(np.full(length, 1000 * number + i))] for i, length in enumerate(lengths)]


def ask(lengths: list[int], number: int = 0) -> Ask:
    return Ask("task", rows(lengths, number))


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.integers(0, 60))
def test_pieces_are_the_request_again(lengths: list[int], limit: int) -> None:
    asks = [ask(lengths), Ask("other", rows(lengths))]
    pieces = list(cut(asks, limit))
    for i, whole in enumerate(asks):
        assert [row for piece in pieces for row in piece.asks[i].rows] == whole.rows
    assert all(piece.tokens <= ceil(limit / 4) or len(piece.asks[0].rows) == 1 or limit == 0 for piece in pieces)
    assert sum(piece.tokens for piece in pieces) == sum(lengths)  # two tasks read the same tokens
    assert limit or len(pieces) == 1


def test_tokens_are_counted_once_for_a_text_that_several_tasks_read() -> None:
    one, two = TokenSequence(np.arange(5)), TokenSequence(np.arange(7))
    assert row_tokens([Ask("mood", [[one]]), Ask("near", [[one, two]])]) == [12]
    assert row_tokens([Ask("mood", [[one]]), Ask("cross", [[TokenSequence(np.arange(5), 3)]])]) == [
        10
    ]  # another segment


def fill(waiting: Waiting, requests: list[list[int]], loop: asyncio.AbstractEventLoop) -> list[QueuedJob]:
    jobs = [QueuedJob(deque(cut([ask(own, i)], waiting.limit)), loop.create_future()) for i, own in enumerate(requests)]
    for job in jobs:
        waiting.put(job)
    return jobs


@given(REQUESTS, st.integers(0, 60), st.sets(st.integers(0, 11)))
def test_every_piece_is_taken_once_and_in_order(requests: list[list[int]], limit: int, gone: set[int]) -> None:
    loop = asyncio.new_event_loop()
    waiting = Waiting(limit)
    jobs = fill(waiting, requests, loop)
    for number in gone & set(range(len(jobs))):
        jobs[number].answer.cancel()
    taken: dict[int, list[Any]] = {id(job): [] for job in jobs}
    while batch := waiting.take():
        assert sum(piece.tokens for _, piece in batch) <= limit or len(batch) == 1
        for job, piece in batch:
            taken[id(job)] += [row[0][0].tolist() for row in piece.asks[0].rows]
    for number, (job, lengths) in enumerate(zip(jobs, requests, strict=True)):
        whole = [] if number in gone else [row[0][0].tolist() for row in rows(lengths, number)]
        assert taken[id(job)] == whole
    assert waiting.tokens == 0
    assert not waiting.jobs
    loop.close()


def test_small_requests_never_wait_for_large_ones() -> None:
    loop = asyncio.new_event_loop()
    waiting = Waiting(80)
    jobs = fill(waiting, [[10] * 40] * 20 + [[5]] * 4, loop)
    first = waiting.take()
    assert {id(job) for job in jobs[-4:]} <= {id(job) for job, _ in first}
    assert first[0][0] is jobs[0]  # and the oldest of all goes on in every pass
    loop.close()


def test_small_requests_are_taken_in_the_order_of_their_arrival() -> None:
    """By size, the largest of many small ones would wait for all that arrive after it."""
    loop = asyncio.new_event_loop()
    waiting = Waiting(80)
    fill(waiting, [[20], [20], [19], [18], *[[5]] * 3], loop)
    assert [piece.tokens for _, piece in waiting.take()] == [20, 20, 19, 18]  # 77: a 5 does not fit
    fill(waiting, [[5]] * 40, loop)
    assert [piece.tokens for _, piece in waiting.take()] == [5] * 16
    loop.close()


def test_a_large_request_is_answered_though_small_ones_keep_coming() -> None:
    loop = asyncio.new_event_loop()
    waiting = Waiting(80)
    (large,) = fill(waiting, [[10] * 40], loop)
    passes = 0
    while large in waiting.jobs:
        fill(waiting, [[5]] * 40, loop)
        waiting.take()
        passes += 1
    assert passes == 20  # a quarter of each
    loop.close()


def test_a_large_request_that_is_alone_has_whole_passes() -> None:
    loop = asyncio.new_event_loop()
    waiting = Waiting(80)
    fill(waiting, [[10] * 40], loop)
    assert sum(piece.tokens for _, piece in waiting.take()) == 80
    assert sum(piece.tokens for _, piece in waiting.take(short=50)) == 40  # unless they would take long
    assert sum(piece.tokens for _, piece in waiting.take(short=1)) == 20
    fill(waiting, [[5]] * 40, loop)
    assert sum(piece.tokens for _, piece in waiting.take(short=1)) == 80  # small ones fill it all the same
    loop.close()


class Mirror:
    """An engine that answers with what it was asked, and remembers its passes."""

    def __init__(self, parallel: int = 1) -> None:
        self.parallel = parallel
        self.passes: list[int] = []
        self.poison: int | None = None

    def run_in_parallel(self, most: int) -> int:
        return min(most, self.parallel)

    def together(self, asks: list[Ask]) -> list[Any]:
        sequences = [sequence.ids for one in asks for row in one.rows for sequence in row]
        if any(ids[0] == self.poison for ids in sequences):
            raise ZeroDivisionError
        self.passes.append(sum(map(len, sequences)))
        return [np.array([row[0][0][0] for row in one.rows]) for one in asks]


def run(engine: Mirror, settings: ServerSettings, requests: list[list[int]]) -> list[Any]:
    """What each request gets: values, or an exception."""

    async def all_of_them() -> list[Any]:
        passed: list[tuple[int, int]] = []
        batcher = Batcher(engine, settings, SimpleNamespace(passed=lambda *n: passed.append(n)))  # type: ignore[arg-type]
        try:
            answers = [batcher.ask(list(cut([ask(r, i)], settings.batch_tokens))) for i, r in enumerate(requests)]
            found = await asyncio.gather(*answers, return_exceptions=True)
        finally:
            batcher.close()
        assert sum(tokens for _, tokens in passed) == sum(map(sum, requests))
        return found

    return asyncio.run(all_of_them())


@given(REQUESTS, st.sampled_from([0, 1, 30, 100, 2048]), st.integers(1, 3))
def test_every_request_gets_its_own_answer(requests: list[list[int]], limit: int, parallel: int) -> None:
    engine = Mirror(parallel)
    found = run(engine, ServerSettings(batch_tokens=limit, max_wait=0.001), requests)
    for number, (values, lengths) in enumerate(zip(found, requests, strict=True)):
        assert values[0].tolist() == [1000 * number + i for i in range(len(lengths))]
    assert sum(engine.passes) == sum(map(sum, requests))
    if limit == 0:
        assert len(engine.passes) == len(requests)


def test_requests_join() -> None:
    engine = Mirror()
    run(engine, ServerSettings(batch_tokens=100, max_wait=1.0), [[10]] * 30)
    assert engine.passes == [100, 100, 100]  # nobody waited for a second: the passes were full


class Meeting(Mirror):
    """An engine whose passes wait for each other: the second pass must begin before the first one ends."""

    def __init__(self) -> None:
        super().__init__(parallel=2)
        self.barrier = threading.Barrier(2, timeout=30)

    def together(self, asks: list[Ask]) -> list[Any]:
        self.barrier.wait()
        return super().together(asks)


def test_passes_run_at_the_same_time() -> None:
    found = run(Meeting(), ServerSettings(batch_tokens=100, max_wait=0.001), [[25] * 8, [25] * 8])
    assert [values[0].tolist() for values in found] == [list(range(8)), list(range(1000, 1008))]


def test_pieces_that_end_in_another_order_are_put_in_order() -> None:
    loop = asyncio.new_event_loop()
    (job,) = fill(Waiting(80), [[10] * 8], loop)
    for piece in reversed(list(job.pieces)):
        job.deliver(piece, [np.array([row[0][0][0] for row in piece.asks[0].rows])])
    assert job.answer.result()[0].tolist() == list(range(8))
    loop.close()


def test_one_request_cannot_fail_its_neighbours() -> None:
    engine = Mirror()
    engine.poison = 1000
    found = run(engine, ServerSettings(batch_tokens=100), [[10]] * 3)
    assert [type(one) for one in found] == [list, ZeroDivisionError, list]


def test_a_full_queue_says_when_to_come_again() -> None:
    async def fill() -> None:
        counts: Any = SimpleNamespace(passed=lambda *_: None)
        batcher = Batcher(Mirror(), ServerSettings(batch_tokens=100, queue_tokens=50, max_wait=0.5), counts)  # type: ignore[arg-type]
        try:
            first = batcher.ask([Piece((ask([80]),), 80)])  # an empty queue takes what it gets
            with pytest.raises(Refusal) as refusal:
                batcher.ask([Piece((ask([80]),), 80)])
            assert refusal.value.status == 429
            assert int(refusal.value.headers["Retry-After"]) >= 1
            assert "80 of 50 tokens are in use" in str(refusal.value)
            await first
        finally:
            batcher.close()

    asyncio.run(fill())
