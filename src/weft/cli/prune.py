"""`weft prune`"""

from pathlib import Path
from typing import Annotated

import typer


def prune(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders.")],
    unfinished: Annotated[
        bool, typer.Option("--unfinished", help="Also prune unfinished runs, which then cannot be resumed.")
    ] = False,
) -> None:
    """Delete the checkpoints of finished runs: only --resume needs them. Models, logs and reports stay."""
    from weft.runs.pruning import prune

    for run in runs:
        freed = prune(run, unfinished=unfinished)
        if freed.checkpoints:
            typer.echo(f"{run}: freed {_size(freed.size)} ({freed.checkpoints} checkpoints)")
        else:
            typer.echo(f"{run}: has no checkpoints; nothing to free")


def _size(count: int) -> str:
    """Format a number of bytes in kB or MB."""
    return f"{count / 1e6:,.1f} MB" if count >= 1e5 else f"{count / 1e3:,.1f} kB"
