"""Collects what is wrong with a file, so that a person hears of all of it at once."""

from collections import Counter
from pathlib import Path

from weft.foundation.errors import UserError

SHOWN = 20


class Problems:
    """The first twenty problems of a file by line, the rest by count."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.shown: list[tuple[int, str]] = []
        self.counts: Counter[str] = Counter()

    def add(self, line: int, kind: str, detail: str) -> None:
        """`kind` is counted; `detail` says what was found and what was expected."""
        self.counts[kind] += 1
        if len(self.shown) < SHOWN:
            self.shown.append((line, f"{self.path}:{line}: {detail}"))

    def join(self, other: "Problems") -> None:
        """Add those that were found in another pass over the same file."""
        self.counts += other.counts
        self.shown = sorted([*self.shown, *other.shown])[:SHOWN]

    def stop(self) -> None:
        """Raise if there was any."""
        if self.counts:
            raise BadRows(self)

    def __str__(self) -> str:
        lines = [text for _, text in self.shown]
        hidden = self.counts.total() - len(self.shown)
        if hidden:
            by_kind = ", ".join(f"{count} x {kind}" for kind, count in self.counts.most_common())
            lines.append(f"{self.path}: and {hidden} more problems (in all: {by_kind})")
        return "\n".join(lines)


class BadRows(UserError):
    """A file has rows that cannot be used."""

    def __init__(self, problems: Problems) -> None:
        super().__init__(str(problems))
        self.problems = problems
