"""`weft report`"""

from pathlib import Path
from typing import Annotated

import typer

from weft.foundation.errors import UserError


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders; several are compared.")],
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="FILE.html", help="Write one page.")] = None,
    text: Annotated[bool, typer.Option("--text", help="Print the report instead, plain when piped.")] = False,
    figures: Annotated[
        Path | None, typer.Option("--figures", metavar="DIR", help="Write every chart as svg and png.")
    ] = None,
) -> None:
    """Report on a run, or compare several runs."""
    if out is None and not text and figures is None:
        raise UserError("report: say what to make: -o FILE.html, --text or --figures DIR")
    if out is not None and out.suffix not in (".html", ".htm"):
        raise UserError(f"-o {out}: expected a name that ends in .html")
    if out is not None and not out.parent.is_dir():
        raise UserError(f"-o {out}: there is no folder {out.parent}")
    if figures is not None and figures.exists() and not figures.is_dir():
        raise UserError(f"--figures {figures}: is a file; name a folder")
    from weft.report.live import SafeConsole
    from weft.report.page import write_page
    from weft.runs.reader import read_runs

    found = read_runs(runs)
    if text:
        from weft.report.text import print_report

        print_report(found, SafeConsole())
    if out is not None:
        write_page(found, out)
        typer.echo(f"{out}  {out.stat().st_size / 1000:,.0f} kB", err=text)
    if figures is not None:
        from weft.report.figures import write_figures

        count = write_figures(found, figures)
        typer.echo(f"{count} figures in {figures}, each as svg and png", err=text)
