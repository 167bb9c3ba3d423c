"""`weft embed`"""

from pathlib import Path
from typing import Annotated

import typer

from weft.cli import options


def embed(
    model: options.ModelArgument,
    source: Annotated[Path, typer.Option("--input", help="A table with a column text.")],
    output: Annotated[Path, typer.Option("--output", help="Where the vectors go: .npy or .parquet.")],
    task: Annotated[
        str | None, typer.Option("--task", help="Whose pooling to use; the first bi task's unless said.")
    ] = None,
    device: options.Device = "auto",
) -> None:
    """One vector for each text of a file."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from weft.data.tables import read_texts, require_writable
    from weft.model import load

    require_writable(output, (".npy", ".parquet"))
    loaded = load(model, device)
    own = loaded.columns(task or loaded.embedding_task())
    texts = read_texts(source, own[:1])[0]
    vectors = loaded.embed(texts, task)
    if output.suffix == ".npy":
        np.save(output, vectors)
    else:
        rows = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
        pq.write_table(pa.table({"text": texts, "embedding": rows}), output)
    typer.echo(f"{len(texts):,} vectors of {vectors.shape[1]} numbers -> {output}")
