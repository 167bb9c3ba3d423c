"""Prefetching of batches."""

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from weft.data.dataset import Dataset
from weft.foundation.values import Batch, Part, Window

Key = tuple[int, int, str]
"""step, forward pass and task"""


class Ahead:
    """Prefetches the batches of the next window in a thread while the current window is computed.

    A batch is a function of its rows and the phase, so the result does not depend on when or in which thread it is
    built.
    """

    def __init__(self, datasets: Mapping[str, Dataset]) -> None:
        self.datasets = datasets
        self._thread = ThreadPoolExecutor(1, "batches")
        self._coming: dict[Key, Future[Batch]] = {}
        self._counted: tuple[Window | None, dict[str, int]] = (None, {})

    def prepare(self, window: Window) -> None:
        """Start to build the batches of a window."""
        present = {key: batch for key, batch in self._coming.items() if key[0] == window.step - 1}
        self._coming = present | {
            (window.step, part.micro, part.task): self._thread.submit(self.datasets[part.task].batch, part.rows)
            for part in window.parts
        }

    def forget(self) -> None:
        """Discard all prefetched batches: in another phase, a batch can carry other stored states."""
        self._coming = {}

    def units(self, window: Window, task: str) -> int:
        """Return the number of units of a task in a window, which its loss there is averaged over; at least 1."""
        if self._counted[0] is not window:
            counts = dict.fromkeys(window.tasks, 0)
            for part in window.parts:
                counts[part.task] += self.datasets[part.task].units(part.rows)
            self._counted = window, counts
        return max(1, self._counted[1][task])

    def batch(self, step: int, part: Part) -> Batch:
        """Return the batch of a part; built now if it was not prefetched."""
        ready = self._coming.pop((step, part.micro, part.task), None)
        return self.datasets[part.task].batch(part.rows) if ready is None else ready.result()
