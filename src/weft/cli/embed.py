"""`weft embed`"""

from pathlib import Path
from typing import Annotated

import typer

from weft.cli import options
from weft.data.empty import require_rule
from weft.inference.bulk import SHARD_ROWS


def embed(
    model: options.ModelArgument,
    source: Annotated[Path, typer.Option("--input", help="A table with a column text.")],
    output: Annotated[Path, typer.Option("--output", help="Output file: .npy or .parquet.")],
    task: Annotated[
        str | None, typer.Option("--task", help="Task whose pooling to use. Defaults to the first bi task.")
    ] = None,
    on_empty: options.OnEmptyText = None,
    device: options.Device = "auto",
    trust_code: options.TrustCode = False,
    executor: options.ExecutorName = "local",
    shard_rows: options.ShardRows = SHARD_ROWS,
) -> None:
    """Compute one vector for each text of a file."""
    from weft.api import embed_file
    from weft.cli.bulk import bar

    with bar() as watcher:
        rows = embed_file(
            model,
            source,
            output,
            task=task,
            on_empty=require_rule(on_empty, "--on-empty"),
            device=device,
            executor=executor,
            shard_rows=shard_rows,
            trust_code=trust_code,
            listener=watcher,
        )
    typer.echo(f"{rows:,} vectors -> {output}")
