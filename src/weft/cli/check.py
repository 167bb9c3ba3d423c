"""`weft check`"""

import typer

from weft.cli import options


def check(
    recipe: options.RecipeArgument,
    data_dir: options.DataDir = None,
    body: options.Body = None,
    settings: options.Settings = None,
    seed: options.Seed = None,
    budget: options.Budget = None,
    trust_code: options.TrustCode = False,
) -> None:
    """Check a recipe and its data without training."""
    options.require_folder(data_dir)
    steps = options.budget_steps(budget)
    from weft.build import assemble
    from weft.recipes.check import examine
    from weft.recipes.recipe import load_recipe
    from weft.report.live import SafeConsole

    loaded = load_recipe(recipe, settings=settings or (), body=body, seed=seed, data_dir=data_dir)
    console = SafeConsole()
    with console.status("reading and tokenizing"):
        findings = examine(assemble(loaded, steps=steps, trust_code=trust_code))
    notes = [f"note: {note}" for note in options.unused_data_dir(loaded, data_dir)]
    for line in [*findings.lines(), *notes]:
        console.print(line, soft_wrap=True)
    if findings.questions:
        typer.echo(f"The recipe and its data can be used. Open warnings and doubts, see above: {findings.questions}")
    else:
        typer.echo("The recipe and its data are in order.")
