"""`weft sweep`"""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli import options
from weft.foundation.errors import Interrupted

if TYPE_CHECKING:
    from rich.console import Console

    from weft.sweep.store import ClaimedTrial
    from weft.training.listener import TrainListener

SHOWN = 10
"""maximum number of trials in the terminal's table; the file has all trials"""


def sweep(
    search: Annotated[str, typer.Argument(metavar="SWEEP", help="A sweep file, or a shipped sweep's name.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="OUT", help="Folder of the sweep.")],
    data_dir: options.DataDir = None,
    trials: Annotated[int | None, typer.Option("--trials", min=1, help="Replace the sweep's number of trials.")] = None,
    device: options.Device = "auto",
    trust_code: options.TrustCode = False,
) -> None:
    """Search over keys of a recipe. Run it again to resume; run it several times in parallel to share the work."""
    options.require_folder(data_dir)
    from weft.report.live import SafeConsole
    from weft.sweep.config import load_sweep
    from weft.sweep.search import run_sweep

    console = SafeConsole()
    loaded = load_sweep(search)
    if trials is not None:
        loaded = loaded.model_copy(update={"trials": trials})
    audience = Terminal(console)
    try:
        found = run_sweep(loaded, out, audience, data_dir=data_dir, device=device, trust_code=trust_code)
    except Interrupted:
        again = shlex.join(sys.argv[1:])
        raise Interrupted(f"stopped; everything up to here is saved. Go on with: weft {again}") from None
    finally:
        audience.close()
    console.print()
    console.print(found.table(SHOWN), soft_wrap=True)
    if running := found.count("running"):
        console.print(f"\n{running} trials are in the hands of other processes, which will complete this table.")
    if found.best:
        console.print(f"\n{found.caution}", soft_wrap=True)
        console.print(f"The best recipe is {out / 'best.toml'}, all trials are in {out / 'sweep.txt'}", soft_wrap=True)


class Terminal:
    """Terminal display of the trials of this process."""

    def __init__(self, console: "Console") -> None:
        from weft.report.live import Watcher

        class Trial(Watcher):
            """Watcher that prints each note once: notes about the data are the same for every trial."""

            def noted(self, message: str) -> None:
                if message not in said:
                    said.add(message)
                    super().noted(message)

        said: set[str] = set()
        self.console = console
        self.make = Trial
        self.watcher: Watcher | None = None

    def trial(self, claim: "ClaimedTrial", planned: int) -> "TrainListener":
        from weft.foundation.content import toml_value

        values = "  ".join(f"{key}={toml_value(value)}" for key, value in claim.point.items())
        again = " resumes" if claim.goes_on else ""
        self.console.print(
            f"trial {claim.number:04d}{again} ({claim.number + 1} of {planned}): {values}",
            soft_wrap=True,
            style="bold",
        )
        self.watcher = self.make(self.console)
        return self.watcher

    def ended(self, claim: "ClaimedTrial", words: str) -> None:
        self.close()
        self.console.print(f"trial {claim.number:04d}: {words}", soft_wrap=True)

    def close(self) -> None:
        if self.watcher is not None:
            self.watcher.close()
