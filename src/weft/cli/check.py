"""`weft check`"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli import options
from weft.foundation.errors import UserError

if TYPE_CHECKING:
    from weft.recipes.assembly import Assembly
    from weft.report.live import SafeConsole


def check(
    recipe: options.RecipeArgument,
    data_dir: options.DataDir = None,
    body: options.Body = None,
    settings: options.Settings = None,
    seed: options.Seed = None,
    budget: options.Budget = None,
    trust_code: options.TrustCode = False,
    audit: Annotated[
        bool,
        typer.Option("--audit", help="Also look for duplicates, conflicts, outliers and probable label errors."),
    ] = False,
    write: Annotated[
        Path | None,
        typer.Option("--write", metavar="FIXED", help="With --audit: list the rows to correct in this new file."),
    ] = None,
) -> None:
    """Check a recipe and its data without training."""
    options.require_folder(data_dir)
    steps = options.budget_steps(budget)
    if write is not None and not audit:
        raise UserError(f"--write {write}: goes with --audit")
    from weft.audit.corrections import require_new
    from weft.build import assemble
    from weft.recipes.check import examine
    from weft.recipes.recipe import load_recipe
    from weft.report.live import SafeConsole

    if write is not None:
        require_new(write)
    loaded = load_recipe(recipe, settings=settings or (), body=body, seed=seed, data_dir=data_dir)
    console = SafeConsole()
    with console.status("reading and tokenizing"):
        made = assemble(loaded, steps=steps, trust_code=trust_code)
        findings = examine(made)
    notes = [f"note: {note}" for note in options.unused_data_dir(loaded, data_dir)]
    for line in [*findings.lines(), *notes]:
        console.print(line, soft_wrap=True)
    if audit:
        _audit(made, console, write)
    if findings.questions:
        typer.echo(f"The recipe and its data can be used. Open warnings and doubts, see above: {findings.questions}")
    else:
        typer.echo("The recipe and its data are in order.")


def _audit(made: "Assembly", console: "SafeConsole", write: Path | None) -> None:
    """Audit the data, show what was found and write the rows to `write` if given."""
    from weft.audit.corrections import write_corrections
    from weft.audit.examination import audit
    from weft.cli.audit_tables import audit_notes, audit_tables, suspicious_lines

    with console.status("auditing the data"):
        report = audit(made.data, made.network.body, made.step.device, made.recipe.seed)
    for table in audit_tables(report):
        console.print()
        console.print(table)
    console.print()
    for line in [*suspicious_lines(report), *(f"note: {note}" for note in audit_notes(report))]:
        console.print(line, soft_wrap=True)
    if write is not None:
        write_corrections(report.findings, write)
        console.print(f"{len(report.findings):,} findings are listed in {write}", soft_wrap=True)
