"""`weft compare`"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli import options
from weft.foundation.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console

    from weft.evaluation.gate import Gate, When

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


def chosen_when(text: str) -> "When":
    """Parse --when."""
    if text == "possible":
        return "possible"
    if text == "clear":
        return "clear"
    raise UserError(f"--when {text}: expected possible or clear")


def show_gate(console: "Console", gate: "Gate") -> None:
    """Print a line for each task, and the verdict."""
    for sentence in gate.sentences():
        console.print(sentence, soft_wrap=True)
    console.print(f"\nThe gate is {'open' if gate.is_open else 'closed'}.")


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
    closes = chosen_when(when)
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
        when=closes,
    ).gate
    if as_json:
        print(to_json({"open": gate.is_open, **gate.plain()}))
    elif markdown:
        print(gate.markdown())
    else:
        show_gate(SafeConsole(), gate)
    if not gate.is_open:
        raise typer.Exit(CLOSED)
