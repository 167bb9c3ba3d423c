"""`weft pretrain`"""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from weft.cli import options
from weft.foundation.errors import Interrupted, UserError


def pretrain(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES|RECIPE", help="Files with texts, or a recipe: then the train texts of all of its tasks."
        ),
    ],
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="BODY", help="Folder of the new body; made by this command.")
    ],
    text: Annotated[str, typer.Option("--text", metavar="COLUMN", help="Column of the texts in FILES.")] = "text",
    data_dir: options.DataDir = None,
    body: Annotated[
        str | None, typer.Option("--body", help="Body to start from. Defaults to the recipe's, or packaged:minilm-l6.")
    ] = None,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="Passes over all texts.")] = 1,
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="steps=N", help="Make N steps instead of whole epochs.")
    ] = None,
    batch_size: Annotated[int, typer.Option("--batch-size", min=1, help="Sequences per step.")] = 32,
    max_length: Annotated[int, typer.Option("--max-length", min=8, help="Maximum tokens in a sequence.")] = 128,
    lr: Annotated[float, typer.Option("--lr", help="Peak learning rate.")] = 1e-4,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of order, masks and dropout.")] = 11711,
    device: options.Device = "auto",
    resume: Annotated[bool, typer.Option("--resume", help="Resume from the last checkpoint.")] = False,
) -> None:
    """Pretrain a body on your own texts by masked-language modelling."""
    options.require_folder(data_dir)
    steps = options.budget_steps(budget)
    if steps is not None and epochs != 1:
        raise UserError("--epochs and --budget exclude each other; keep one")
    from weft.bodies.source import find_body
    from weft.foundation.config import parse
    from weft.pretraining.course import PretrainConfig
    from weft.pretraining.pretrain import columns_of_files, columns_of_recipe
    from weft.pretraining.pretrain import pretrain as run
    from weft.recipes.recipe import load_recipe
    from weft.report.live import SafeConsole

    content = {"seed": seed, "epochs": epochs, "batch_size": batch_size, "max_length": max_length, "lr": lr}
    config = parse(PretrainConfig, content, "weft pretrain")
    if len(sources) == 1 and _is_recipe(sources[0]):
        if text != "text":
            raise UserError(f"--text {text}: is for files; a recipe names the columns of its tasks")
        recipe = load_recipe(sources[0], body=body, data_dir=data_dir)
        folder = find_body(recipe.body)
        columns = columns_of_recipe(recipe, folder)
    else:
        folder = find_body(body or "packaged:minilm-l6")
        columns = columns_of_files([Path(source) for source in sources], text, folder)
    console = SafeConsole()

    def tell(message: str) -> None:
        console.print(message, soft_wrap=True)

    try:
        result = run(columns, folder, out, config, steps=steps, device=device, resume=resume, tell=tell)
    except Interrupted:
        again = [a for a in sys.argv[1:] if a != "--resume"]
        raise Interrupted(
            f"stopped; everything up to here is saved. Go on with: weft {shlex.join(again)} --resume"
        ) from None
    console.print(
        f"dev loss {result.loss_before:.4f} -> {result.loss:.4f} in {result.steps:,} steps. Recipes start from this "
        f"body with --body {out}",
        soft_wrap=True,
    )


def _is_recipe(source: str) -> bool:
    """Return whether a source is a recipe file or the name of a shipped recipe."""
    return source.endswith(".toml") or not (Path(source).suffix or Path(source).exists())
