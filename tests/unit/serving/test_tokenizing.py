"""Requests take turns at the tokenizer, and one that is cancelled has no further turn."""

import asyncio

import numpy as np
import pytest

from weft.data.readings import TokenSequence
from weft.inference.joint import Ask
from weft.serving.tokenizing import TURN, Tokenizing


class Work:
    """Rows that remember when they were tokenized."""

    def __init__(self, name: str, rows: int, done: list[str]) -> None:
        self.name = name
        self.done = done
        self.chars = [TURN] * rows

    def make(self, rows: slice) -> list[Ask]:
        self.done.append(self.name)
        numbers = range(len(self.chars))[rows]
        return [Ask(task, [[TokenSequence(np.array([number]))] for number in numbers]) for task in ("mood", "near")]


def test_small_requests_do_not_wait_for_large_ones() -> None:
    done: list[str] = []

    async def run() -> list[list[Ask]]:
        tokenizing = Tokenizing(lambda _: None)
        large = [Work(f"large {number}", 50, done) for number in range(5)]
        works = [*large, Work("small", 1, done)]
        try:
            return await asyncio.gather(*(tokenizing.asks(work.make, work.chars) for work in works))
        finally:
            tokenizing.close()

    found = asyncio.run(run())
    assert done.index("small") < 20  # of 251 turns
    for asks, rows in zip(found, [50] * 5 + [1], strict=True):
        assert [ask.task for ask in asks] == ["mood", "near"]
        assert [int(row[0][0][0]) for row in asks[0].rows] == list(range(rows))


def test_who_has_gone_has_no_further_turn() -> None:
    done: list[str] = []
    counted: list[int] = []

    async def run() -> None:
        tokenizing = Tokenizing(counted.append)
        works = [Work(f"{number}", 1000, done) for number in range(20)]
        tasks = [asyncio.ensure_future(tokenizing.asks(work.make, work.chars)) for work in works]
        while len(done) < 40:
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        before = len(done)
        (ask, _) = await tokenizing.asks(Work("small", 1, done).make, [1])
        assert len(ask.rows) == 1
        assert len(done) <= before + 3  # the small one, and what two threads had begun
        tokenizing.close()

    asyncio.run(run())
    assert len(done) < 200  # of 20,000 turns
    assert sum(counted) >= TURN * (len(done) - 1)
