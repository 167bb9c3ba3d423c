"""Texts to tokens in a few threads. Requests take turns, so that a large one delays nobody and stops when cancelled."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from weft.inference.joint import Ask
from weft.serving.waiting import spans

THREADS = 2
"""the library works without holding Python up"""
TURN = 20_000
"""characters of a turn: a few milliseconds; a longer text has a turn of its own"""


class Tokenizing:
    """Owned by the event loop. The pool never has more work than threads: whoever waits, waits for a turn."""

    def __init__(self, count: Callable[[int], None]) -> None:
        """`count` is told the characters of every turn that has begun."""
        self.count = count
        self.pool = ThreadPoolExecutor(THREADS, "tokens")
        self.turns = asyncio.Semaphore(THREADS)  # first come, first served

    async def asks(self, make: Callable[[slice], list[Ask]], chars: Sequence[int]) -> list[Ask]:
        """What `make` returns for all rows, called for a few at a time; `chars` of each row."""
        loop = asyncio.get_running_loop()
        parts: list[list[Ask]] = []
        for rows, size in spans(chars, TURN):
            async with self.turns:
                self.count(size)
                parts.append(await loop.run_in_executor(self.pool, make, rows))
        return [
            Ask(own[0].task, [row for part in own for row in part.rows], own[0].vectors)
            for own in zip(*parts, strict=True)
        ]

    def close(self) -> None:
        self.pool.shutdown()
