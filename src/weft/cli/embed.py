"""`weft embed`"""

from pathlib import Path
from typing import Annotated

import typer

from weft.bulk import SHARD_ROWS
from weft.cli import options


def embed(
    model: options.ModelArgument,
    source: Annotated[Path, typer.Option("--input", help="A table with a column text.")],
    output: Annotated[Path, typer.Option("--output", help="Where the vectors go: .npy or .parquet.")],
    task: Annotated[
        str | None, typer.Option("--task", help="Whose pooling to use; the first bi task's unless said.")
    ] = None,
    device: options.Device = "auto",
    executor: options.ExecutorName = "local",
    shard_rows: options.ShardRows = SHARD_ROWS,
) -> None:
    """One vector for each text of a file."""
    from weft.bulk.job import Job
    from weft.bulk.work import Vectors
    from weft.cli.bulk import watched
    from weft.data.tables import require_writable

    require_writable(output, (".npy", ".parquet"))
    rows = watched(Job(model, Vectors(task), source, output, device, executor, shard_rows))
    typer.echo(f"{rows:,} vectors -> {output}")
