"""`weft study`"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli import options
from weft.foundation.errors import RunError, UserError

if TYPE_CHECKING:
    from rich.console import Console

    from weft.study.executors import StudyExecutor
    from weft.study.format import FoundStudy
    from weft.study.records import StudyResult

Out = Annotated[
    Path | None, typer.Option("-o", "--out", metavar="OUT", help="Folder of the study; the same command resumes it.")
]
Seeds = Annotated[
    str | None, typer.Option("--seeds", metavar="N,N,...", help="Replace the seeds that every arm is trained with.")
]
Plan = Annotated[bool, typer.Option("--plan", help="Print what would run and how long it should take; train nothing.")]
ExecutorName = Annotated[str, typer.Option("--executor", help="Where runs are executed: local or ray.")]
Reuse = Annotated[
    list[Path] | None,
    typer.Option(
        "--reuse",
        metavar="FOLDER",
        help="Folder of another study: copy its finished runs that equal runs of this one; may be repeated.",
    ),
]
Jobs = Annotated[int, typer.Option("--jobs", min=1, help="Number of parallel runs.")]


def study(
    study: Annotated[
        str | None,
        typer.Argument(metavar="[STUDY]", help="A study file, or a shipped study's name; without one, lists those."),
    ] = None,
    out: Out = None,
    data_dir: options.DataDir = None,
    body: options.Body = None,
    settings: options.Settings = None,
    seeds: Seeds = None,
    full: Annotated[bool, typer.Option("--full", help="Run the large version of the study.")] = False,
    plan: Plan = False,
    executor: ExecutorName = "local",
    jobs: Jobs = 1,
    reuse: Reuse = None,
    device: options.Device = "auto",
    trust_code: options.TrustCode = False,
) -> None:
    """Compare recipes under equal conditions, with several seeds, and judge claims about them."""
    from weft.study.format import FoundStudy, load_study
    from weft.study.plan import with_settings

    if study is None:
        _list()
        return
    source = load_study(study)
    chosen = with_settings(source.study.enlarged() if full else source.study, settings or ())
    if seeds is not None:
        chosen = chosen.model_copy(update={"seeds": options.seed_numbers(seeds)})
    run(FoundStudy(chosen, source.folder), out, data_dir, body, plan, executor, jobs, device, trust_code, reuse or ())


def run(
    source: "FoundStudy",
    out: Path | None,
    data_dir: Path | None,
    body: str | None,
    plan_only: bool,
    executor: str,
    jobs: int,
    device: str,
    trust_code: bool,
    reuse: Sequence[Path] = (),
) -> None:
    """Plan a study and, unless `plan_only`, run it and show its results."""
    options.require_folder(data_dir)
    if out is None and not plan_only:
        raise UserError("study: say with -o which folder the study goes into, or look at it with --plan")
    chosen = _executor(executor, jobs)
    from weft.report.live import SafeConsole
    from weft.study.description import describe
    from weft.study.plan import plan_study
    from weft.study.runner import run_study

    console = SafeConsole()
    with console.status("reading, tokenizing and building every arm"):
        planned = plan_study(source, data_dir=data_dir, body=body, device=device, trust_code=trust_code)
    for line in describe(planned):
        console.print(line, soft_wrap=True)
    if plan_only:
        return
    assert out is not None
    result = run_study(planned, out, chosen, lambda line: console.print(line, soft_wrap=True), reuse)
    _show(console, result, out)
    if not any(arm.seeds for arm in result.arms.values()):
        raise RunError(f"{out}: no run finished; the log of each is in {out / 'logs'}")


def _executor(name: str, jobs: int) -> "StudyExecutor":
    from weft.study.executors import EXECUTORS

    if name not in EXECUTORS:
        raise UserError(f"--executor {name}: expected {' or '.join(EXECUTORS)}")
    return EXECUTORS[name](jobs)


def _list() -> None:
    from weft.foundation.shipped import shipped_texts
    from weft.study.format import parse_study

    width = max(map(len, shipped_texts("studies")))
    for name, text in shipped_texts("studies").items():
        found = parse_study(text, name)
        typer.echo(f"{name:<{width}}  {text.splitlines()[0].removeprefix('# ')}")
        for claim in found.claims:
            typer.echo(f"{'':<{width}}    {claim.text}")


def _show(console: "Console", result: "StudyResult", out: Path) -> None:
    from rich.table import Table
    from rich.text import Text

    from weft.study import tables

    for title, (header, rows) in tables.short(result):
        table = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left")
        for name in header:
            table.add_column(name, overflow="fold")
        for row in rows:
            table.add_row(*row)
        console.print()
        console.print(table)
    console.print()
    for claim in result.claims:
        console.print(Text.assemble((claim.verdict, "bold"), f"  {tables.claim_line(claim)}"), soft_wrap=True)
    for note in tables.problems(result):
        console.print(f"note: {note}", style="yellow", soft_wrap=True)
    console.print(f"{out / 'study.html'} has all tables; study.md, study.json and runs/ lie beside it", soft_wrap=True)
