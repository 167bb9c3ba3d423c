"""`weft ensemble`"""

from pathlib import Path
from typing import Annotated

import typer

from weft.cli import options


def ensemble(
    models: Annotated[list[Path], typer.Argument(metavar="MODEL...", help="Run folders or model folders.")],
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="OUT", help="Folder that names the members; made by this command.")
    ],
    data_dir: options.DataDir = None,
    device: options.Device = "auto",
    trust_code: options.TrustCode = False,
    as_json: options.Json = False,
) -> None:
    """Score the mean prediction of several models; the folder serves as a teacher in `distill.teachers`."""
    options.require_folder(data_dir)
    from weft.cli.terminal import score_table
    from weft.foundation.records import to_json
    from weft.report.live import SafeConsole
    from weft.training.ensemble import make_ensemble

    made = make_ensemble(models, out, data_dir=data_dir, device=device, trust_code=trust_code)
    if as_json:
        print(to_json(made))
        return
    console = SafeConsole()
    console.print(score_table(made.scores, made.overall))
    console.print(f'\nA student learns from it with distill.teachers = ["{out}"]', soft_wrap=True, markup=False)
