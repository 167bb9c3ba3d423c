"""Collection of all problems of a file, to report them together."""

from collections import Counter

from weft.data.frames import Source, place
from weft.foundation.errors import UserError

SHOWN = 20


class Problems:
    """Problems of a file or table: the first twenty by row, the rest as counts."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.shown: list[tuple[int, str]] = []
        self.counts: Counter[str] = Counter()

    def add(self, line: int, kind: str, detail: str) -> None:
        """Add a problem. `kind` is counted; `detail` says what was found and what was expected."""
        self.counts[kind] += 1
        if len(self.shown) < SHOWN:
            self.shown.append((line, f"{place(self.source, line)}: {detail}"))

    def join(self, other: "Problems") -> None:
        """Add the problems found in another pass over the same file."""
        self.counts += other.counts
        self.shown = sorted([*self.shown, *other.shown])[:SHOWN]

    def stop(self) -> None:
        """Raise `BadRows` if there are any problems."""
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
    """Error for a file with unusable rows."""

    def __init__(self, problems: Problems) -> None:
        super().__init__(str(problems))
        self.problems = problems
