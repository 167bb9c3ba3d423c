"""`weft init`"""

import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from weft.foundation.atomic import write_whole
from weft.foundation.errors import UserError
from weft.foundation.sanitize import for_terminal


def init(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Your files: csv, tsv, jsonl or parquet.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="RECIPE", help="The recipe to write, NAME.toml.")],
) -> None:
    """Propose a recipe for your own files, with every choice explained."""
    if out.exists():
        raise UserError(f"{out}: already exists; choose another name with -o")
    if out.suffix != ".toml":
        raise UserError(f"-o {out}: expected a name that ends in .toml")
    if not out.parent.is_dir():
        raise UserError(f"-o {out}: there is no folder {out.parent}")
    from weft.recipes.init.writer import propose
    from weft.recipes.recipe import parse_recipe, resolve

    text = propose(files, out, _ask if sys.stdin.isatty() and sys.stdout.isatty() else _take_proposal)
    resolve(parse_recipe(tomllib.loads(text), str(out)), out.parent, None)  # the text must be a valid recipe
    try:
        write_whole(out, text)
    except OSError as error:
        raise UserError(f"-o {out}: cannot be written ({error.strerror})") from None
    typer.echo(for_terminal(text), nl=False)
    typer.echo(f"\nwritten to {out}; next: weft check {out}", err=True)


def _ask(question: str, proposed: str, possible: Sequence[str]) -> str:
    answer = typer.prompt(question, default=proposed, err=True)
    while answer not in possible:
        typer.echo(f"expected one of {', '.join(possible)}", err=True)
        answer = typer.prompt(question, default=proposed, err=True)
    return str(answer)


def _take_proposal(question: str, proposed: str, possible: Sequence[str]) -> str:  # noqa: ARG001
    return proposed
