"""Progress of file jobs: a bar in a terminal, nothing in a pipe. Standard output is reserved for results."""

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from weft.report.live import SafeConsole


def bar() -> "BulkBar":
    """Return a progress bar on standard error."""
    return BulkBar(SafeConsole(stderr=True))


class BulkBar(Progress):
    """Progress bar with rows done, rows per second and time left."""

    def __init__(self, console: Console) -> None:
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("rows{task.fields[speed]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
            speed_estimate_period=600,  # a shard may take minutes
        )
        self.only = self.add_task("checking", total=None, speed="")

    def started(self, done: int, rows: int) -> None:
        self.reset(self.only, description="answering", total=rows, completed=done, speed="")

    def advanced(self, rows: int) -> None:
        self.advance(self.only, rows)
        speed = self.tasks[0].speed
        if speed:
            self.update(self.only, speed=f"  {speed:,.0f} rows/s")

    def noted(self, message: str) -> None:
        self.console.print(f"weft: {message}", soft_wrap=True)
