"""Export of trained models to `transformers`, `sentence-transformers`, ONNX and PEFT."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from weft.export import onnx, peft, sentence_transformers, transformers
from weft.export.outcome import Outcome, Quantization
from weft.export.source import ExportSource, open_source
from weft.foundation.atomic import new_folder
from weft.foundation.errors import UserError

Target = Literal["transformers", "sentence-transformers", "onnx", "peft"]
TARGETS: dict[str, Callable[[ExportSource, Path], Outcome]] = {
    "transformers": transformers.write,
    "sentence-transformers": sentence_transformers.write,
    "onnx": onnx.write,
    "peft": peft.write,
}


def export(
    model: str | Path,
    to: str,
    out: str | Path,
    *,
    quantize: str | None = None,
    data_dir: Path | None = None,
    trust_code: bool = False,
) -> Outcome:
    """Export a run or model folder for another library into the new folder `out`.

    `quantize = "int8"` makes ONNX files smaller and faster, and evaluates them on the dev files before and after.
    `data_dir` is the folder with the files of presets. `trust_code` allows importing code that the model names.
    """
    if to not in TARGETS:
        raise UserError(f"--to {to}: expected one of {', '.join(TARGETS)}")
    if quantize not in (None, "int8"):
        raise UserError(f"--quantize {quantize}: expected int8")
    if quantize is not None and to != "onnx":
        raise UserError(f"--quantize {quantize}: is for --to onnx; {to} reads full precision")
    with new_folder(Path(out)) as folder:
        source = open_source(Path(model), trust_code)
        outcome = TARGETS[to](source, folder)
        if quantize is not None:
            outcome.quantization = onnx.quantize(source, folder, data_dir)
        outcome.save_card(source, to, folder)
    return outcome


__all__ = ["TARGETS", "Outcome", "Quantization", "Target", "export"]
