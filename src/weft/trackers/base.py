"""What a tracker is: it gets the numbers that metrics.jsonl gets, under names that draw well."""

from abc import ABC, abstractmethod
from typing import Any


class Tracker(ABC):
    """Opened by its first numbers, so that a run that goes on knows where."""

    @abstractmethod
    def log(self, step: int, values: dict[str, float]) -> None: ...

    @abstractmethod
    def close(self) -> None: ...


def numbers(record: dict[str, Any]) -> dict[str, float]:
    """The numbers in a record of metrics.jsonl, named `loss/sentiment`, `dev/sentiment/accuracy` and so on."""
    names = {"losses": "dev loss", "train_losses": "train loss", "weights": "weight", "cosines": "conflict"}
    if record["event"] == "step":
        names["losses"] = "loss"
    found: dict[str, float] = {}
    for key, value in record.items():
        if key not in ("event", "step", "best", "rows"):
            _flatten(names.get(key, key), value, found)
    return found


def _flatten(name: str, value: Any, into: dict[str, float]) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            _flatten(f"{name}/{key.replace('|', ' - ')}", inner, into)
    elif isinstance(value, (int, float)):
        into[name] = float(value)
