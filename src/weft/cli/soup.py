"""`weft soup`"""

from pathlib import Path
from typing import Annotated

import typer

from weft.cli import options


def soup(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders of the same recipe.")],
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="MODEL", help="Folder of the new model; made by this command.")
    ],
    data_dir: options.DataDir = None,
    device: options.Device = "auto",
    trust_code: options.TrustCode = False,
    as_json: options.Json = False,
) -> None:
    """Average the weights of several runs into one model, greedily by dev score."""
    options.require_folder(data_dir)
    from weft.cli.terminal import score_table
    from weft.foundation.records import to_json
    from weft.report.live import SafeConsole
    from weft.training.soup import Ingredient, make_soup

    console = SafeConsole(quiet=as_json)

    def tell(ingredient: Ingredient) -> None:
        verdict = "kept" if ingredient.kept else "left out"
        console.print(
            f"{ingredient.folder}: {ingredient.overall:.4f} alone, {ingredient.with_it:.4f} in the soup: {verdict}"
        )

    made = make_soup(runs, out, data_dir=data_dir, device=device, trust_code=trust_code, tell=tell)
    if as_json:
        print(to_json(made.record))
        return
    console.print(score_table(made.evaluation.scores, made.evaluation.overall))
    console.print(f"\nThe model is in {out}", soft_wrap=True)
