"""`weft compare`"""

from pathlib import Path
from typing import Annotated

import typer

from weft.cli import options
from weft.foundation.errors import UserError

CLOSED = 3
"""exit code of a closed gate"""

MaxDrop = Annotated[
    float,
    typer.Option("--max-drop", metavar="X", help="Largest accepted drop of a task's primary metric."),
]
WhenCloses = Annotated[
    str,
    typer.Option(
        "--when",
        metavar="possible|clear",
        help="Which drops close the gate: those that cannot be excluded (possible) or only established ones (clear).",
    ),
]


def compare(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="The model in use: a run folder or a model folder.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The model that would replace it.")],
    data_dir: options.DataDir = None,
    split: options.Split = None,
    file: options.TaskFile = None,
    max_drop: MaxDrop = 0.005,
    when: WhenCloses = "possible",
    device: options.Device = "auto",
    trust_code: options.TrustCode = False,
    as_json: options.Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown table, for a pull request.")] = False,
) -> None:
    """Compare two models on their shared tasks; exit with code 3 if the new one may be worse."""
    options.require_folder(data_dir)
    if when not in ("possible", "clear"):
        raise UserError(f"--when {when}: expected possible or clear")
    if as_json and markdown:
        raise UserError("--json and --markdown: keep one of them")
    split, files = options.split_or_files(split, file)
    from weft.foundation.records import to_json
    from weft.inference.comparing import compare as compared
    from weft.inference.model import load
    from weft.report.live import SafeConsole

    models = [load(folder, device, trust_code=trust_code) for folder in (old, new)]
    gate = compared(
        *models,
        split=split,
        data_dir=data_dir,
        files=files,
        max_drop=max_drop,
        when="clear" if when == "clear" else "possible",
    )
    if as_json:
        print(to_json({"open": gate.is_open, **gate.plain()}))
    elif markdown:
        print(gate.markdown())
    else:
        console = SafeConsole()
        for sentence in gate.sentences():
            console.print(sentence, soft_wrap=True)
        console.print(f"\nThe gate is {'open' if gate.is_open else 'closed'}.")
    if not gate.is_open:
        raise typer.Exit(CLOSED)
