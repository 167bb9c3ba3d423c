"""`weft evaluate`"""

from pathlib import Path
from typing import Annotated

import typer

from weft.cli import options
from weft.foundation.errors import UserError


def evaluate(
    model: options.ModelArgument,
    data_dir: options.DataDir = None,
    split: Annotated[str | None, typer.Option("--split", help="train, dev (default) or test.")] = None,
    file: Annotated[
        list[str] | None,
        typer.Option("--file", metavar="TASK=FILE", help="Score a task on this file instead."),
    ] = None,
    device: options.Device = "auto",
    trust_code: options.TrustCode = False,
    as_json: options.Json = False,
) -> None:
    """Evaluate a trained model."""
    options.require_folder(data_dir)
    if split is not None and file:
        raise UserError(f"--split {split}: goes with the recipe's own files; --file names others. Keep one of them")
    split = split or "dev"
    options.require_split(split)
    files = {}
    for item in file or []:
        task, equals, path = item.partition("=")
        if not equals:
            raise UserError(f"--file {item}: expected TASK=FILE, such as --file sentiment=reviews.csv")
        files[task] = Path(path)
    from weft.cli.terminal import score_table
    from weft.foundation.records import to_json
    from weft.inference.model import load
    from weft.report.live import SafeConsole

    shown = "file" if files else split
    loaded = load(model, device, trust_code=trust_code)
    for note in options.unused_data_dir(loaded.config, data_dir):
        typer.echo(f"note: {note}", err=True)
    tuned = [task for task, labels in loaded.labels.items() if labels.thresholds is not None]
    if tuned and split == "dev" and not files:
        typer.echo(
            f"note: the thresholds of {', '.join(tuned)} were tuned on the dev rows, so these scores are optimistic; "
            "the run's result.json has cross-fitted ones",
            err=True,
        )
    evaluation = loaded.evaluate(split, data_dir=data_dir, files=files)
    if as_json:
        scores = {"split": shown, "tasks": evaluation.scores, "overall": evaluation.overall}
        print(to_json(scores))
    else:
        SafeConsole().print(score_table(evaluation.scores, evaluation.overall, split=shown))
