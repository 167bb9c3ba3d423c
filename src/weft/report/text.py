"""The report in the terminal; plain text if the output is piped."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from weft.evaluation.bootstrap import Interval
from weft.report import mistakes
from weft.report.compare import Comparison
from weft.report.live import marked
from weft.report.scores import Score, Scores
from weft.report.sections import section_of
from weft.report.tables import plain_table
from weft.report.words import duration, facts, lead, missing, notes
from weft.runs.reader import Run, TaskRun


def print_report(runs: Sequence[Run], console: Console) -> None:
    if len(runs) == 1:
        _run(runs[0], console)
    else:
        _runs(runs, console)


def _run(run: Run, console: Console) -> None:
    scores = Scores(run)
    _say(console, run.recipe["name"], "bold")
    _say(console, lead(run))
    console.print()
    console.print(scoreplain_table(scores))
    for line in scores.explained:
        _say(console, line, "dim")
    console.print()
    for name, value, detail in facts(run, scores):
        _say(console, f"{name}: {value}" + (f" ({detail})" if detail else ""))
    for note in notes(run):
        _say(console, f"note: {note}", "yellow")
    for task in run.tasks.values():
        _task(task, console)
    lines = missing(run)
    if lines:
        _say(console, "\nNot in this report", "bold")
        for line in lines:
            _say(console, f"  {line}")


def scoreplain_table(scores: Scores) -> Table:
    """Return the scores before and after training, with intervals and the random baseline."""
    table = plain_table("task", "metric", right=("before", "after", "95 % interval", "train", "random", "rows"))
    for score in [*scores.table, scores.overall]:
        last = score is scores.overall
        table.add_row(
            marked(score.task, scores.run.untrained, scores.run.auxiliary) if score.is_primary else "",
            "" if last else score.title,
            _number(score.before),
            _number(score.value),
            _span(score.interval),
            _number(score.train),
            _number(score.guess),
            "" if score.rows is None or not score.is_primary else f"{score.rows:,}",
            style=None if score.is_primary else "dim",
        )
    return table


def _task(task: TaskRun, console: Console) -> None:
    _say(console, f"\n{task.name}", "bold")
    console.print(section_of(task.kind).text(task))
    for group in mistakes.groups(task):
        worst = group.worst[0]
        _say(console, f"{group.title}: {group.rows:,}", "dim")
        _say(console, f"  {' | '.join(worst.texts)}  (true {worst.true}, predicted {worst.answer})")


def _runs(runs: Sequence[Run], console: Console) -> None:
    found = Comparison([Scores(run) for run in runs])
    table = plain_table("run", right=(*found.tasks, *(["overall"] if found.whole else []), "steps", "time"))
    for scores in found.scores:
        cells: list[Score] = [found.score(scores, task) for task in found.tasks]
        cells += [scores.overall] if found.whole else []
        table.add_row(
            scores.run.label,
            *(_number(c.value) for c in cells),
            str(scores.run.steps_done),
            duration(scores.run.seconds),
        )
    means = [found.mean(task) for task in found.tasks] + ([found.mean(None)] if found.whole else [])
    table.add_row("mean", *(_number(mean) for mean in means), "", "")
    console.print(table)
    for line in found.scores[0].explained:
        _say(console, line, "dim")
    gaps = found.gaps()
    if gaps:
        _say(console, f"\nCompared with {found.labels[0]}, on the same rows", "bold")
        table = plain_table("run", "task", right=("difference", "95 % interval", "rows that differ"))
        for gap in gaps:
            rows = "" if gap.disagree is None else f"{gap.disagree:,}"
            table.add_row(gap.run, gap.task, f"{gap.difference.value:+.3f}", _span(gap.difference.interval), rows)
        console.print(table)
    for note in found.uncomparable():
        _say(console, f"note: {note}", "yellow")


def _say(console: Console, text: str, style: str = "") -> None:
    console.print(Text(text, style=style), soft_wrap=True)


def _number(value: float | None) -> str:
    return "-" if value is None or value != value else f"{value:.3f}"


def _span(interval: Interval | None) -> str:
    return "-" if interval is None else f"{interval.low:.3f} to {interval.high:.3f}"
