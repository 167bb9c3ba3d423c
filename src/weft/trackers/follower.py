"""Feeds a tracker from the log of a run."""

from collections.abc import Callable
from typing import Any

from weft.trackers.base import Tracker, numbers


class Follower:
    """A tracker that fails, such as one whose server is gone, is left behind: training goes on without it."""

    def __init__(self, tracker: Tracker, say: Callable[[str], None]) -> None:
        self.tracker: Tracker | None = tracker
        self.say = say

    def __call__(self, record: dict[str, Any]) -> None:
        self._try(lambda tracker: tracker.log(int(record["step"]), numbers(record)))

    def close(self) -> None:
        self._try(lambda tracker: tracker.close())

    def _try(self, act: Callable[[Tracker], None]) -> None:
        if self.tracker is None:
            return
        try:
            act(self.tracker)
        except Exception as error:  # whatever a library or a network throws
            name = type(self.tracker).__name__
            self.say(f"the tracker {name} failed and is left out from here on ({error}); metrics.jsonl has everything")
            self.tracker = None
