"""Findings of an audit."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from weft.audit.agreement import Agreement

DUPLICATE = "duplicate"
NEAR_DUPLICATE = "near duplicate"
LEAK = "dev row in train"
NEAR_LEAK = "dev row nearly in train"
CONFLICT = "conflicting labels"
LABEL_ERROR = "probable label error"
SCRIPT = "unusual script"
LENGTH = "unusual length"
TITLES = {
    LEAK: "dev rows that also occur in train",
    NEAR_LEAK: "dev rows that nearly occur in train",
    CONFLICT: "rows whose text has several labels",
    LABEL_ERROR: "probable label errors in train",
    DUPLICATE: "repeated rows of a split",
    NEAR_DUPLICATE: "nearly repeated rows of a split",
    SCRIPT: "texts in another script",
    LENGTH: "texts of unusual length",
}
"""what a row may be listed for -> how it is counted, in the order of importance"""


@dataclass(frozen=True)
class RowFinding:
    """One row to look at."""

    task: str
    finding: str
    """one of `TITLES`"""
    split: str
    file: str
    line: int
    texts: tuple[str, ...]
    label: str
    suggestion: str = ""
    """the label that the other rows suggest, for a probable label error"""
    score: float | None = None
    """label quality (low is suspicious) of a label error, Jaccard similarity of near duplicates"""
    detail: str = ""
    """the other row, the script or the length"""


@dataclass(frozen=True)
class TaskAudit:
    """What an audit found in one task."""

    task: str
    train_rows: int
    dev_rows: int
    classes: dict[str, tuple[int, int]]
    """class -> rows in train and dev; empty if labels are numbers"""
    findings: list[RowFinding]
    notes: list[str] = field(default_factory=list)

    def count(self, finding: str) -> int:
        """Number of distinct rows that are listed for a finding."""
        return len({(row.file, row.line) for row in self.findings if row.finding == finding})


@dataclass(frozen=True)
class AuditReport:
    """What an audit found in all tasks."""

    tasks: list[TaskAudit]
    agreements: list[Agreement]

    @property
    def findings(self) -> list[RowFinding]:
        return [row for task in self.tasks for row in task.findings]

    def worst(self, finding: str, count: int) -> Sequence[RowFinding]:
        """Return the first rows of every task that are listed for a finding: the most suspicious ones."""
        taken: Counter[str] = Counter()
        chosen = []
        for row in self.findings:
            if row.finding == finding and taken[row.task] < count:
                taken[row.task] += 1
                chosen.append(row)
        return chosen
