"""The interface of a tracker: it receives the numbers of metrics.jsonl, under hierarchical names."""

from abc import ABC, abstractmethod
from typing import Any


class Tracker(ABC):
    """Opened lazily by the first call of `log`, so that a resumed run knows its first step."""

    @abstractmethod
    def log(self, step: int, values: dict[str, float]) -> None:
        """Record the values of a step."""

    @abstractmethod
    def close(self) -> None:
        """Flush and close."""


def numbers(record: dict[str, Any]) -> dict[str, float]:
    """Flatten a record of metrics.jsonl to names such as `loss/sentiment` and `dev/sentiment/accuracy`."""
    names = {"losses": "dev loss", "train_losses": "train loss", "weights": "weight", "cosines": "conflict"}
    if record["event"] == "step":
        names["losses"] = "loss"
    # the final scores are of other rows than those of earlier evaluations, so they are not part of their curves
    first = "final " if record["event"] == "final" else ""
    found: dict[str, float] = {}
    for key, value in record.items():
        if key not in ("event", "step", "best", "rows", "sample", "selected_on"):
            _flatten(first + names.get(key, key), value, found)
    return found


def _flatten(name: str, value: Any, into: dict[str, float]) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            _flatten(f"{name}/{key.replace('|', ' - ')}", inner, into)
    elif isinstance(value, (int, float)):
        into[name] = float(value)
