"""`weft export`"""

from pathlib import Path
from typing import Annotated

import typer

from weft.cli import options


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A run folder, or the model folder inside it.")],
    to: Annotated[
        str, typer.Option("--to", help="transformers, sentence-transformers, onnx, or peft for LoRA adapters.")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="OUT", help="Folder to write; made by this command.")],
    quantize: Annotated[
        str | None, typer.Option("--quantize", metavar="int8", help="8-bit weights, evaluated on dev. For onnx.")
    ] = None,
    data_dir: options.DataDir = None,
    trust_code: options.TrustCode = False,
) -> None:
    """Export a trained model for other libraries."""
    options.require_folder(data_dir)
    from weft.cli.terminal import score_table
    from weft.export import export as write
    from weft.report.live import SafeConsole

    console = SafeConsole()
    with console.status(f"writing {out}"):
        outcome = write(model, to, out, quantize=quantize, data_dir=data_dir, trust_code=trust_code)
    for what, where in outcome.written.items():
        console.print(f"{what}: {out / where}", soft_wrap=True)
    for task, reason in outcome.skipped.items():
        console.print(f"{task}: skipped, {reason}", style="yellow", soft_wrap=True)
    if outcome.quantization is not None:
        made = outcome.quantization
        before, after = made.before, made.after
        console.print(score_table(after.scores, after.overall, before.scores, before.overall, "int8"))
        size, small = (count / 1e6 for count in (made.bytes_before, made.bytes_after))
        console.print(f"{size:,.0f} MB before, {small:,.0f} MB now")
