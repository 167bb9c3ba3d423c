"""`weft remove`"""

from pathlib import Path
from typing import Annotated

import typer

from weft.cli import options


def remove(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A run folder or a model folder; it is not changed.")],
    tasks: Annotated[list[str], typer.Argument(metavar="TASK...", help="The tasks to leave out.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="OUT", help="The new model folder.")],
    trust_code: options.TrustCode = False,
) -> None:
    """Write the same model without some of its tasks."""
    from weft.growth.remove import remove as removed

    removed(model, tasks, out, trust_code=trust_code)
    typer.echo(f"written to {out}")
