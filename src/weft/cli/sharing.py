"""`weft sharing`"""

from typing import Annotated

import typer

from weft.cli import options
from weft.cli.study import ExecutorName, Jobs, Out, Plan, Reuse, run


def sharing(
    recipe: options.RecipeArgument,
    out: Out = None,
    data_dir: options.DataDir = None,
    body: options.Body = None,
    settings: options.Settings = None,
    budget: Annotated[
        str | None,
        typer.Option("--budget", metavar="steps=N", help="Steps of the shared body. Defaults to the recipe's own."),
    ] = None,
    seeds: Annotated[str, typer.Option("--seeds", metavar="N,N,...", help="The seeds of every arm.")] = "1,2,3",
    task: Annotated[
        list[str] | None,
        typer.Option(
            "--task",
            metavar="TASK",
            help="Compare this task only; may be repeated. The shared body still trains all. Default: every task.",
        ),
    ] = None,
    max_time: Annotated[
        str | None,
        typer.Option(
            "--max-time",
            metavar="TIME",
            help="Train less, so that all runs together take about this long, such as 90s, 30m or 2h.",
        ),
    ] = None,
    plan: Plan = False,
    executor: ExecutorName = "local",
    jobs: Jobs = 1,
    reuse: Reuse = None,
    device: options.Device = "auto",
    trust_code: options.TrustCode = False,
) -> None:
    """Measure whether the tasks of a recipe gain from sharing a body, and which of them conflict."""
    options.require_folder(data_dir)
    steps = options.budget_steps(budget)
    seconds = options.time_seconds(max_time)
    numbers = options.seed_numbers(seeds)
    from weft.recipes.recipe import load_recipe
    from weft.study.sharing import sharing_study

    loaded = load_recipe(recipe, settings=settings or (), body=body, data_dir=data_dir)
    source = sharing_study(
        loaded,
        seeds=numbers,
        steps=steps,
        tasks=task or (),
        max_seconds=seconds,
        device=device,
        trust_code=trust_code,
    )
    run(source, out, None, None, plan, executor, jobs, device, trust_code, reuse or ())
