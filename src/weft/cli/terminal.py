"""What a run looks like while it is watched: a live table in a terminal, plain lines in a log."""

import time
from collections.abc import Collection, Iterable, Mapping

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from weft.evaluation.scoring import Evaluation
from weft.evaluation.table import shown
from weft.foundation.sanitize import for_terminal
from weft.kinds.metrics import METRICS, explain, title
from weft.runs.folder import RunPaths
from weft.runs.records import RunResult, UntrainedScores
from weft.training import checkpoint
from weft.training.step import StepReport

PLAIN_SECONDS = 15
SMOOTH = 0.95
"""how much of a shown number is its past: single batches jump too much to read"""


class SafeConsole(Console):
    """Shows what others wrote as plain text: no markup, and no control characters but those of its own styles."""

    def __init__(self, *, stderr: bool = False, quiet: bool = False) -> None:
        super().__init__(stderr=stderr, quiet=quiet, highlight=False, markup=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(for_terminal(segment.text), segment.style)


class Watcher:
    """Follows a run on the terminal."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.losses: dict[str, float] = {}
        self.steps = 0
        self.rate = 0.0
        self.first = 0
        """steps that were done before this process began"""
        self.begun = self.last = self.spoke = time.perf_counter()
        self.bar: Progress | None = None

    def started(self, progress: checkpoint.Progress, steps: int) -> None:
        self.steps = steps
        self.begun = self.last = self.spoke = time.perf_counter()
        self.first = progress.step
        if progress.step == steps:
            self.console.print(f"all {steps:,} steps are done: nothing is left to train")
        elif progress.step:
            self.console.print(f"going on after step {progress.step} of {steps}")
        if self.console.is_terminal:
            self.bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                TaskProgressColumn(),
                TextColumn("{task.fields[losses]}"),
                TextColumn("{task.fields[speed]}"),
                TimeRemainingColumn(),
                console=self.console,
                transient=True,
            )
            self.bar.start()
            self.bar.add_task("training", total=steps, completed=progress.step, losses="", speed="")

    def stepped(self, step: int, report: StepReport, seconds: float) -> None:  # noqa: ARG002
        for task, loss in report.losses.items():
            self.losses[task] = SMOOTH * self.losses.get(task, loss) + (1 - SMOOTH) * loss
        now = time.perf_counter()
        rate = report.tokens / (now - self.last)
        self.rate = SMOOTH * (self.rate or rate) + (1 - SMOOTH) * rate
        self.last = now
        losses = "  ".join(f"{task} {loss:.3f}" for task, loss in self.losses.items())
        speed = f"{self.rate:,.0f} tokens/s"
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], completed=step, losses=losses, speed=speed)
        elif now - self.spoke >= PLAIN_SECONDS or step == self.steps:
            self.spoke = now
            left = (now - self.begun) / (step - self.first) * (self.steps - step)  # evaluations so far included
            self.console.print(
                f"step {step}/{self.steps}  loss: {losses}  {speed}  about {clock(left)} left", soft_wrap=True
            )

    def evaluated(self, evaluation: Evaluation, is_best: bool) -> None:
        primary = "  ".join(
            f"{marked(task, evaluation.untrained)} {_first(scores):.3f}" for task, scores in evaluation.scores.items()
        )
        mark = "  best so far" if is_best else ""
        self.console.print(
            f"after {evaluation.step:,} steps  {primary}  overall {evaluation.overall:.3f}{mark}", soft_wrap=True
        )
        self.last = time.perf_counter()  # the time it took is not the next step's

    def noted(self, message: str) -> None:
        self.console.print(f"note: {message}", style="yellow", soft_wrap=True)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.stop()


def clock(seconds: float) -> str:
    """1:05, or 2:01:05 from an hour on"""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _first(scores: Mapping[str, float]) -> float:
    """The primary metric stands first."""
    return next(iter(scores.values()))


def score_table(
    scores: Mapping[str, Mapping[str, float | None]],
    overall: float | None,
    before: Mapping[str, Mapping[str, float | None]] | None = None,
    before_overall: float | None = None,
    split: str = "dev",
    untrained: Collection[str] = (),
) -> Group:
    """Task by task, the primary metric first; with the untrained heads beside it if they were scored.

    Below the table it says how overall is formed and what its metrics average over.
    """
    measured = {task: [metric for metric in values if metric in METRICS] for task, values in scores.items()}
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("task")
    table.add_column("metric")
    if before:
        table.add_column("before", justify="right")
    table.add_column(split, justify="right", style="bold")
    table.add_column("rows", justify="right")
    for task, values in scores.items():
        for i, metric in enumerate(measured[task]):
            cells = [marked(task, untrained) if i == 0 else "", title(metric)]
            if before:
                cells.append(shown(before[task][metric]))
            cells += [shown(values[metric]), f"{values['n']:,}" if i == 0 else ""]
            table.add_row(*cells, style=None if i == 0 else "dim")
    cells = ["overall", ""] + ([shown(before_overall)] if before else [])
    table.add_row(*cells, shown(overall), "")
    return Group(table, *(Text(line, style="dim") for line in explain(measured, {})))


def marked(task: str, untrained: Collection[str]) -> str:
    """A task's name, with a word where it got no batch in this run."""
    return f"{task} (not trained)" if task in untrained else task


def show_result(console: Console, result: RunResult, run: RunPaths) -> None:
    """The end of a run: scores before and after, time, and where the model is."""
    before = result.before or UntrainedScores()
    console.print()
    console.print(score_table(result.dev, result.overall, before.dev, before.overall, untrained=result.untrained))
    if result.untrained:
        trained = [task for task in result.dev if task not in result.untrained]
        console.print(f"\nThe best epoch was chosen by {', '.join(trained)}: {shown(result.selection)}")
    stopped_early = result.planned_steps is not None and result.steps < result.planned_steps
    planned = f" of {result.planned_steps:,}" if stopped_early else ""
    console.print(
        f"\n{result.steps:,}{planned} steps in {clock(result.seconds)}, best after step {result.best_step:,}. "
        f"The model is in {run.model}, a report in {run.report}",
        soft_wrap=True,
    )
