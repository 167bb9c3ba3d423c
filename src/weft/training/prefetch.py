"""Batches that are ready when they are needed."""

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from weft.data.dataset import Dataset
from weft.foundation.values import Batch, Part, Window

Key = tuple[int, int, str]
"""step, forward pass and task"""


class Ahead:
    """A thread makes the batches of the coming window while the present one computes.

    What it makes follows from the rows alone, so it does not matter who makes it, or when.
    """

    def __init__(self, datasets: Mapping[str, Dataset]) -> None:
        self.datasets = datasets
        self._thread = ThreadPoolExecutor(1, "batches")
        self._coming: dict[Key, Future[Batch]] = {}

    def prepare(self, window: Window) -> None:
        present = {key: batch for key, batch in self._coming.items() if key[0] == window.step - 1}
        self._coming = present | {
            (window.step, part.micro, part.task): self._thread.submit(self.datasets[part.task].batch, part.rows)
            for part in window.parts
        }

    def batch(self, step: int, part: Part) -> Batch:
        """The batch of a part; made now if nobody asked for it before."""
        ready = self._coming.pop((step, part.micro, part.task), None)
        return self.datasets[part.task].batch(part.rows) if ready is None else ready.result()
