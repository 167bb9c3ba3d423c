"""`weft train`"""

import shlex
import sys
from typing import Annotated

import typer

from weft.cli import options
from weft.foundation.errors import Interrupted


def train(
    recipe: options.RecipeArgument,
    out: options.RunOut,
    data_dir: options.DataDir = None,
    body: options.Body = None,
    settings: options.Settings = None,
    seed: options.Seed = None,
    budget: options.Budget = None,
    device: options.Device = "auto",
    resume: Annotated[bool, typer.Option("--resume", help="Resume from the last checkpoint.")] = False,
    allow_trackers: Annotated[
        list[str] | None,
        typer.Option("--allow-tracker", metavar="URI", help="Let the recipe send its log to this address."),
    ] = None,
    trust_code: options.TrustCode = False,
) -> None:
    """Train a recipe and write a run folder."""
    options.require_folder(data_dir)
    steps = options.budget_steps(budget)
    from weft.cli.terminal import show_result
    from weft.recipes.recipe import load_recipe
    from weft.report.live import SafeConsole, Watcher
    from weft.run import train_run
    from weft.runs.folder import RunPaths
    from weft.training.distributed import join

    with join(device) as processes:
        console = SafeConsole(quiet=not processes.leads)
        with processes.agreement():
            loaded = load_recipe(recipe, settings=settings or (), body=body, seed=seed, data_dir=data_dir)
        watcher = Watcher(console)
        for note in options.unused_data_dir(loaded, data_dir):
            watcher.noted(note)
        try:
            result = train_run(
                loaded,
                out,
                watcher,
                steps=steps,
                device=device,
                resume=resume,
                allow_trackers=allow_trackers or (),
                trust_code=trust_code,
                processes=processes,
            )
        except Interrupted:
            if not processes.leads:
                raise
            again = [a for a in sys.argv[1:] if a != "--resume"]
            raise Interrupted(
                f"stopped; everything up to here is saved. Go on with: weft {shlex.join(again)} --resume"
            ) from None
        finally:
            watcher.close()
        if result is not None:
            show_result(console, result, RunPaths(out))
