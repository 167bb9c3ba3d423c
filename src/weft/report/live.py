"""What a run looks like while it is watched: a progress bar in a terminal or a notebook, plain lines in a log."""

import html
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.segment import Segment

from weft.evaluation.scoring import Evaluation
from weft.foundation.sanitize import for_terminal
from weft.training import checkpoint
from weft.training.step import StepReport

PLAIN_SECONDS = 15
NOTEBOOK_SECONDS = 0.5
"""between two updates of a notebook's page"""
SMOOTH = 0.95
"""how much of a shown number is its past: single batches jump too much to read"""


class SafeConsole(Console):
    """Shows what others wrote as plain text: no markup, and no control characters but those of its own styles."""

    def __init__(self, *, stderr: bool = False, quiet: bool = False) -> None:
        super().__init__(stderr=stderr, quiet=quiet, highlight=False, markup=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(for_terminal(segment.text), segment.style)


class Bar(Protocol):
    """How far a run is."""

    def show(self, step: int, losses: str, speed: str) -> None: ...
    def close(self) -> None: ...


class TerminalBar:
    """A line at the bottom of a terminal; it is gone when the run has ended."""

    def __init__(self, console: Console, step: int, steps: int) -> None:
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TextColumn("{task.fields[losses]}"),
            TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self.progress.start()
        self.task = self.progress.add_task("training", total=steps, completed=step, losses="", speed="")

    def show(self, step: int, losses: str, speed: str) -> None:
        self.progress.update(self.task, completed=step, losses=losses, speed=speed)

    def close(self) -> None:
        self.progress.stop()


class NotebookBar:
    """The browser's own progress element, by IPython alone: rich's bars need ipywidgets in a notebook."""

    def __init__(self, steps: int) -> None:
        from IPython.display import HTML, display

        self.steps = steps
        self._html = HTML
        self._shown = 0.0
        self._handle: Any = display(HTML(self._page(0, "")), display_id=True)

    def show(self, step: int, losses: str, speed: str) -> None:
        now = time.monotonic()
        if now - self._shown >= NOTEBOOK_SECONDS or step == self.steps:
            self._shown = now
            self._handle.update(self._html(self._page(step, f"{losses}  {speed}")))

    def close(self) -> None:
        """The last state stays on the page."""

    def _page(self, step: int, said: str) -> str:
        shown = html.escape(for_terminal(f"step {step:,} of {self.steps:,}  {said}"))
        return f'<progress value="{step}" max="{self.steps}"></progress> <code>{shown}</code>'


class Watcher:
    """Follows a run on the terminal, in a notebook or in a log."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.losses: dict[str, float] = {}
        self.steps = 0
        self.rate = 0.0
        self.first = 0
        """steps that were done before this process began"""
        self.begun = self.last = self.spoke = time.perf_counter()
        self.bar: Bar | None = None

    def started(self, progress: checkpoint.Progress, steps: int) -> None:
        self.steps = steps
        self.begun = self.last = self.spoke = time.perf_counter()
        self.first = progress.step
        if progress.step == steps:
            self.console.print(f"all {steps:,} steps are done: nothing is left to train")
        elif progress.step:
            self.console.print(f"going on after step {progress.step} of {steps}")
        if self.console.is_jupyter:
            self.bar = NotebookBar(steps)
        elif self.console.is_terminal:
            self.bar = TerminalBar(self.console, progress.step, steps)

    def stepped(self, step: int, report: StepReport, seconds: float) -> None:  # noqa: ARG002
        for task, loss in report.losses.items():
            self.losses[task] = SMOOTH * self.losses.get(task, loss) + (1 - SMOOTH) * loss
        now = time.perf_counter()
        rate = report.tokens / (now - self.last)
        self.rate = SMOOTH * (self.rate or rate) + (1 - SMOOTH) * rate
        self.last = now
        losses = "  ".join(f"{task} {loss:.3f}" for task, loss in self.losses.items())
        speed = f"{self.rate:,.0f} tokens/s" if self.rate else ""
        if self.bar is not None:
            self.bar.show(step, losses, speed)
        elif now - self.spoke >= PLAIN_SECONDS or step == self.steps:
            self.spoke = now
            left = (now - self.begun) / (step - self.first) * (self.steps - step)  # evaluations so far included
            self.console.print(
                f"step {step}/{self.steps}  loss: {losses}  {speed}  about {clock(left)} left", soft_wrap=True
            )

    def evaluated(self, evaluation: Evaluation, is_best: bool) -> None:
        primary = "  ".join(
            f"{marked(task, evaluation.untrained, evaluation.auxiliary)} {_first(scores):.3f}"
            for task, scores in evaluation.scores.items()
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
            self.bar.close()


def clock(seconds: float) -> str:
    """1:05, or 2:01:05 from an hour on"""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _first(scores: Mapping[str, float]) -> float:
    """The primary metric stands first."""
    return next(iter(scores.values()))


def marked(task: str, untrained: Collection[str], auxiliary: Collection[str]) -> str:
    """A task's name, with a word if it got no batch in this run or does not count in the overall score."""
    words = [word for word, tasks in (("not trained", untrained), ("auxiliary", auxiliary)) if task in tasks]
    return f"{task} ({', '.join(words)})" if words else task
