"""Terminal output of an audit."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table

from weft.audit.findings import LABEL_ERROR, TITLES, AuditReport

SHOWN = 5
"""probable label errors of each task that are shown; --write lists all"""
WIDTH = 80
"""characters of a text that are shown"""


def audit_tables(report: AuditReport) -> Iterator[RenderableType]:
    """Yield the counts of all findings and the class balance."""
    counts = _table("finding (rows)", *(task.task for task in report.tasks))
    counts.add_row("rows in train and dev", *(f"{task.train_rows:,} + {task.dev_rows:,}" for task in report.tasks))
    for finding, title in TITLES.items():
        counts.add_row(title, *(f"{task.count(finding):,}" for task in report.tasks))
    yield counts
    for task in report.tasks:
        if task.classes:
            balance = _table(f"{task.task}: class", "train", "dev")
            for name, (train, dev) in task.classes.items():
                balance.add_row(name, f"{train:,}", f"{dev:,}")
            yield balance


def suspicious_lines(report: AuditReport) -> list[str]:
    """Return one line for each of the most suspicious labels of every task."""
    return [
        f"{row.file}:{row.line}: {row.task} has {row.label!r}, suggested {row.suggestion!r} "
        f"(quality {row.score:.2f}): {shown(' | '.join(row.texts))}"
        for row in report.worst(LABEL_ERROR, SHOWN)
    ]


def shown(text: str) -> str:
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 3]}..."


def audit_notes(report: AuditReport) -> list[str]:
    """Return the remarks on all tasks, and how much label columns of the same texts agree."""
    notes = [f"{task.task}: {note}" for task in report.tasks for note in task.notes]
    return notes + [str(agreement) for agreement in report.agreements]


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    return table
