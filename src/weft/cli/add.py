"""`weft add`"""

from pathlib import Path
from typing import Annotated

import typer

from weft.cli import options
from weft.cli.compare import CLOSED, MaxDrop, WhenCloses, chosen_when, show_gate
from weft.foundation.errors import UserError


def add(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The trained model: a run folder or a model folder.")],
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A recipe with the tasks to add.")],
    out: options.RunOut,
    keep: Annotated[
        str,
        typer.Option(
            "--keep",
            metavar="exact|rehearse|distill",
            help="Freeze the body and the old heads (exact), train on the old tasks' data too (rehearse), or on the "
            "old model's answers to the new texts (distill).",
        ),
    ],
    unlabelled: Annotated[
        list[Path] | None,
        typer.Option(
            "--unlabelled",
            metavar="FILE",
            help="distill: further texts for the old model to answer, in the column `text`, or pairs in `text` and "
            "`text2`; may be repeated.",
        ),
    ] = None,
    answers: Annotated[
        int | None,
        typer.Option(
            "--answers",
            metavar="N",
            help="distill: let the old model answer at most N texts, and N pairs, drawn at random. Defaults to all.",
        ),
    ] = None,
    data_dir: options.DataDir = None,
    file: Annotated[
        list[str] | None,
        typer.Option("--file", metavar="TASK=FILE", help="Dev rows of an old task, instead of those of its dev file."),
    ] = None,
    settings: options.Settings = None,
    budget: options.Budget = None,
    max_drop: MaxDrop = 0.005,
    when: WhenCloses = "possible",
    device: options.Device = "auto",
    resume: Annotated[bool, typer.Option("--resume", help="Continue this run after an interruption.")] = False,
    trust_code: options.TrustCode = False,
) -> None:
    """Add tasks to a trained model; exit with code 3 if an old task may have become worse."""
    options.require_folder(data_dir)
    _, files = options.split_or_files(None, file)
    closes = chosen_when(when)
    steps = options.budget_steps(budget)
    from weft.cli.terminal import show_result
    from weft.growth.add import add as added
    from weft.growth.compose import KEEPS
    from weft.recipes.recipe import load_recipe
    from weft.report.live import SafeConsole, Watcher
    from weft.runs.folder import RunPaths

    chosen = next((own for own in KEEPS if own == keep), None)
    if chosen is None:
        raise UserError(f"--keep {keep}: expected {', '.join(KEEPS[:-1])} or {KEEPS[-1]}")
    console = SafeConsole()
    watcher = Watcher(console)
    try:
        result = added(
            model,
            load_recipe(recipe, settings=settings or (), data_dir=data_dir),
            out,
            watcher,
            keep=chosen,
            unlabelled=unlabelled or (),
            answers=answers,
            data_dir=data_dir,
            files=files,
            max_drop=max_drop,
            when=closes,
            steps=steps,
            device=device,
            resume=resume,
            trust_code=trust_code,
        )
    finally:
        watcher.close()
    show_result(console, result, RunPaths(out))
    assert result.gate is not None
    console.print()
    show_gate(console, result.gate)
    if not result.gate.is_open:
        console.print(f"{model} is unchanged.", soft_wrap=True)
        raise typer.Exit(CLOSED)
