"""Forwards the log of a run to a tracker."""

from collections.abc import Callable
from typing import Any

from weft.trackers.base import Tracker, numbers


class Follower:
    """Forwards records to a tracker. If the tracker fails, it is disabled and training continues."""

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
        except Exception as error:  # tracker libraries and networks raise anything
            name = type(self.tracker).__name__
            self.say(f"the tracker {name} failed and is disabled ({error}); metrics.jsonl is complete")
            self.tracker = None
