"""Tokenizes texts in a few threads. Requests take turns, so a large one delays no other and stops when cancelled."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from weft.inference.joint import Ask
from weft.serving.waiting import spans

THREADS = 2
"""Threads of the pool. The tokenizer library releases the GIL."""
TURN = 20_000
"""Maximum number of characters in a turn, a few milliseconds; a longer text has a separate turn."""


class Tokenizing:
    """Thread pool owned by the event loop. It never has more work than threads: requests wait for a turn instead."""

    def __init__(self, count: Callable[[int], None]) -> None:
        """`count` is called with the characters of every turn when it starts."""
        self.count = count
        self.pool = ThreadPoolExecutor(THREADS, "tokens")
        self.turns = asyncio.Semaphore(THREADS)  # first come, first served

    async def asks(self, make: Callable[[slice], list[Ask]], chars: Sequence[int]) -> list[Ask]:
        """Call `make` on a few rows at a time and join the results; `chars` are the characters of each row."""
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
