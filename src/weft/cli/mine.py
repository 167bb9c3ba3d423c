"""`weft mine`"""

from pathlib import Path
from typing import Annotated, cast

import typer

from weft.cli import options


def mine(
    source: Annotated[Path, typer.Option("--input", help="A table with a column text, or vectors in an .npy file.")],
    output: Annotated[Path, typer.Option("--output", help="Output file: .csv, .tsv, .jsonl or .parquet.")],
    model: Annotated[
        Path | None, typer.Argument(metavar="[MODEL]", help="A run folder or model that embeds texts.")
    ] = None,
    mode: Annotated[
        str, typer.Option("--mode", help="pairs, neighbours, or negatives (of pairs of texts that match).")
    ] = "pairs",
    top_k: Annotated[int, typer.Option("--top-k", metavar="N", help="Neighbours or negatives of each row.")] = 10,
    min_score: Annotated[
        float | None, typer.Option("--min-score", metavar="X", help="Minimum cosine similarity.")
    ] = None,
    skip: Annotated[
        int, typer.Option("--skip", metavar="N", help="Negatives: skip the N nearest, which may be matches.")
    ] = 0,
    margin: Annotated[
        float | None,
        typer.Option("--margin", metavar="X", help="Negatives: less similar than the match by at least X."),
    ] = None,
    task: Annotated[
        str | None, typer.Option("--task", help="Task whose pooling to use. Defaults to the first bi task.")
    ] = None,
    device: options.Device = "auto",
    trust_code: options.TrustCode = False,
) -> None:
    """Find the nearest texts of a file: pairs, neighbours, or hard negatives for training."""
    from weft.api import mine_file
    from weft.cli.bulk import bar
    from weft.inference.mining import Mode

    with bar() as watcher:
        rows = mine_file(
            model,
            source,
            output,
            mode=cast("Mode", mode),
            top_k=top_k,
            min_score=min_score,
            skip=skip,
            margin=margin,
            task=task,
            device=device,
            trust_code=trust_code,
            listener=watcher,
        )
    typer.echo(f"{mode} of {rows:,} rows -> {output}")
