"""Collects what is wrong with a file, so that a person hears of all of it at once."""

from collections import Counter
from pathlib import Path

from weft.errors import UserError

SHOWN = 20


class Problems:
    """The first twenty problems of a file by line, the rest by count."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.shown: list[str] = []
        self.counts: Counter[str] = Counter()

    def add(self, line: int, kind: str, detail: str) -> None:
        """`kind` is counted; `detail` says what was found and what was expected."""
        self.counts[kind] += 1
        if len(self.shown) < SHOWN:
            self.shown.append(f"{self.path}:{line}: {detail}")

    def stop(self) -> None:
        """Raise if there was any."""
        if not self.counts:
            return
        lines = list(self.shown)
        hidden = self.counts.total() - len(self.shown)
        if hidden:
            by_kind = ", ".join(f"{count} x {kind}" for kind, count in self.counts.most_common())
            lines.append(f"{self.path}: and {hidden} more problems (in all: {by_kind})")
        raise UserError("\n".join(lines))
