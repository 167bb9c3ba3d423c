"""`weft evaluate`"""

import typer

from weft.cli import options


def evaluate(
    model: options.ModelArgument,
    data_dir: options.DataDir = None,
    split: options.Split = None,
    file: options.TaskFile = None,
    device: options.Device = "auto",
    trust_code: options.TrustCode = False,
    as_json: options.Json = False,
) -> None:
    """Evaluate a trained model."""
    options.require_folder(data_dir)
    split, files = options.split_or_files(split, file)
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
        table = score_table(evaluation.scores, evaluation.overall, split=shown, auxiliary=evaluation.auxiliary)
        SafeConsole().print(table)
