"""`weft probe`"""

import json
from typing import Annotated

import typer

from weft.cli import options
from weft.foundation.atomic import write_whole
from weft.foundation.sanitize import for_terminal


def probe(
    model: options.ModelArgument,
    data_dir: options.DataDir = None,
    split: Annotated[str, typer.Option("--split", help="train, dev or test.")] = "dev",
    device: options.Device = "auto",
    trust_code: options.TrustCode = False,
    as_json: options.Json = False,
) -> None:
    """Swap the gendered words in a split's texts and measure how much the answers change."""
    options.require_folder(data_dir)
    options.require_split(split)
    from rich.table import Table

    from weft.inference import probe as probing
    from weft.inference.model import load
    from weft.report.live import SafeConsole
    from weft.runs.folder import RunPaths

    found = probing.probe(load(model, device, trust_code=trust_code), split, data_dir)
    run = RunPaths(model)
    if run.metrics.is_file():  # a run folder: its next report includes the result
        write_whole(run.bias, json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    if as_json:
        print(for_terminal(json.dumps(found, ensure_ascii=False)))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("task", "rows", "of", "answers that change", "mean move", "largest move"):
        table.add_column(name, justify="left" if name == "task" else "right")
    for name, task in found["tasks"].items():
        changed = "-" if task["changed"] is None else f"{task['changed']:.1%}"
        moves = [f"{task[key]:.3f}" if task["rows"] else "-" for key in ("mean_move", "largest_move")]
        table.add_row(name, f"{task['rows']:,}", f"{task['of']:,}", changed, *moves)
    SafeConsole().print(table)
