"""Collects what is wrong with a file, so that a person hears of all of it at once."""

from collections import Counter

from weft.data.frames import Source, place
from weft.foundation.errors import UserError

SHOWN = 20


class Problems:
    """The first twenty problems of a file or table by row, the rest by count."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.shown: list[tuple[int, str]] = []
        self.counts: Counter[str] = Counter()

    def add(self, line: int, kind: str, detail: str) -> None:
        """`kind` is counted; `detail` says what was found and what was expected."""
        self.counts[kind] += 1
        if len(self.shown) < SHOWN:
            self.shown.append((line, f"{place(self.source, line)}: {detail}"))

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
            lines.append(f"{self.source}: and {hidden} more problems (in all: {by_kind})")
        return "\n".join(lines)


class BadRows(UserError):
    """A file has rows that cannot be used."""

    def __init__(self, problems: Problems) -> None:
        super().__init__(str(problems))
        self.problems = problems
