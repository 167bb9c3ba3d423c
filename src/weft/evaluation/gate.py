"""A gate between two models: whether the second may be worse than the first on a task that both have."""

import math
from dataclasses import dataclass
from typing import Literal

from weft.evaluation.bootstrap import Answered, PairedDifference, paired
from weft.evaluation.table import shown
from weft.foundation.records import JsonRecord
from weft.kinds.metrics import METRICS, title

When = Literal["possible", "clear"]
"""Which drops close the gate: those that cannot be excluded, or only those that are established."""


@dataclass(frozen=True)
class GatedTask(JsonRecord):
    """One task of both models, on the same rows. A positive difference favours the new model."""

    task: str
    metric: str
    """the task's primary metric"""
    rows: int
    old: float
    new: float
    difference: float
    """positive if the new model is better, also for metrics that are better if lower"""
    low: float | None
    """95 % interval of the difference, by the paired bootstrap over rows; None if it is undefined"""
    high: float | None
    closes: bool
    """whether this task closes the gate"""
    rows_needed: int | None
    """rows at which a difference of this size would open the gate; None if it is open, or if no number would"""

    def sentence(self, max_drop: float, when: When) -> str:
        """Describe the scores, the interval and the verdict in one line."""
        change = f"{self.task}: {title(self.metric)} {shown(self.old)} -> {shown(self.new)}"
        if self.low is None or self.high is None:
            return f"{change}; the difference cannot be computed on {self.rows:,} rows, so a drop cannot be excluded"
        change += f" ({self.difference:+.3f}, 95 % interval {self.low:+.3f} to {self.high:+.3f})"
        if not self.closes:
            excluded = "no drop" if self.low >= 0 else f"a drop beyond {max_drop:g} is excluded"
            return f"{change}: {excluded if when == 'possible' else f'no clear drop beyond {max_drop:g}'}"
        if when == "clear":
            return f"{change}: the drop is larger than {max_drop:g}"
        more = "" if self.rows_needed is None else f"; about {self.rows_needed:,} rows would decide"
        return f"{change}: a drop beyond {max_drop:g} cannot be excluded on {self.rows:,} rows{more}"


@dataclass(frozen=True)
class Gate(JsonRecord):
    """The verdict over all shared tasks."""

    max_drop: float
    """the largest drop that is accepted, in units of each task's primary metric"""
    when: When
    tasks: tuple[GatedTask, ...]

    @property
    def is_open(self) -> bool:
        return not any(task.closes for task in self.tasks)

    def sentences(self) -> list[str]:
        return [task.sentence(self.max_drop, self.when) for task in self.tasks]

    def markdown(self) -> str:
        """Format a table for a pull request."""
        head = ["task", "metric", "old", "new", "difference", "95 % interval", "rows", "gate"]
        lines = [f"| {' | '.join(head)} |", f"| {' | '.join(['---'] * len(head))} |"]
        for task in self.tasks:
            interval = "-" if task.low is None else f"{task.low:+.3f} to {task.high:+.3f}"
            cells = [task.task, title(task.metric), shown(task.old), shown(task.new), f"{task.difference:+.3f}"]
            cells += [interval, f"{task.rows:,}", "closed" if task.closes else "open"]
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines)


def gated(task: str, metric: str, old: Answered, new: Answered, max_drop: float, when: When) -> GatedTask:
    """Compare the old and the new model's answers to the same rows."""
    rows = len(old[0])
    found = paired(metric, old, new, task)
    low, high = (None, None) if found.interval is None else (found.interval.low, found.interval.high)
    if low is None or high is None or math.isnan(found.value):
        closes = True
    else:
        closes = low < -max_drop if when == "possible" else high < -max_drop
    compute = METRICS[metric].compute
    return GatedTask(
        task=task,
        metric=metric,
        rows=rows,
        old=compute(*old),
        new=compute(*new),
        difference=found.value,
        low=low,
        high=high,
        closes=closes,
        rows_needed=rows_needed(found, rows, max_drop) if closes and when == "possible" else None,
    )


def rows_needed(found: PairedDifference, rows: int, max_drop: float) -> int | None:
    """Return the rows at which the interval around the same difference would exclude a drop beyond `max_drop`.

    The distance from the difference to the interval's lower end shrinks with the square root of the rows.
    """
    room = found.value + max_drop
    if found.interval is None or not room > 0:  # also if the difference is NaN
        return None
    return math.ceil(rows * ((found.value - found.interval.low) / room) ** 2)
