"""`weft demo`"""

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES: dict[str, list[tuple[str, ...]]] = {
    "sentiment": [
        ("A joy from the first scene to the last.",),
        ("It is watchable, but you will have forgotten it by morning.",),
        ("A dreadful, endless bore.",),
    ],
    "paraphrase": [
        ("Can cats drink milk?", "Is milk safe for cats to drink?"),
        ("How do I remove candle wax from a tablecloth?", "How do I make candles from old wax?"),
    ],
    "similarity": [
        ("A woman is feeding pigeons in the square.", "A lady gives bread to birds in a plaza."),
        ("A woman is feeding pigeons in the square.", "The council has banned cars from the square."),
    ],
}


def demo(
    out: Annotated[Path, typer.Option("-o", "--out", metavar="RUN", help="Folder of the run.")] = Path("runs/demo"),
) -> None:
    """Train the starter recipe on the starter data and show example predictions."""
    from weft.cli.terminal import show_result
    from weft.inference.model import load
    from weft.recipes.recipe import load_recipe
    from weft.report.live import SafeConsole, Watcher
    from weft.run import train_run
    from weft.runs.folder import RunPaths

    console = SafeConsole()
    folder = _free(out)
    console.print("weft: one BERT body, three tasks, 340 training rows each, written for this demo", style="bold")
    console.print("scores of the untrained heads first, then 7 passes over the data\n")
    watcher = Watcher(console)
    try:
        result = train_run(load_recipe("starter"), folder, watcher)
    finally:
        watcher.close()
    assert result is not None, "one process leads itself"
    show_result(console, result, RunPaths(folder))

    model = load(folder)
    console.print("\nThree answers from one body, for texts it has never seen:")
    for task, rows in EXAMPLES.items():
        sides = list(zip(*rows, strict=True))
        predictions = model.predict(task, sides[0], sides[1] if len(sides) > 1 else None)
        console.print(f"\n{task}", style="bold")
        for texts, prediction in zip(rows, predictions, strict=True):
            if prediction.label is None:
                answer = f"{prediction.score:.1f} of 5"
            else:
                answer = f"{prediction.label} ({prediction.score:.0%})"
            console.print(f"  {answer:24}  {'  |  '.join(texts)}", soft_wrap=True)

    run = RunPaths(folder)
    console.print("\nWhat next", style="bold")
    console.print(f"  open {run.report}      what it learnt, and its mistakes", soft_wrap=True)
    console.print(f'  weft predict {folder} sentiment "your own sentence"')
    console.print(f"  weft evaluate {folder}")
    console.print("  weft init your-file.csv -o my-task.toml      a recipe for your own data", soft_wrap=True)
    console.print(f"  results: {run.result}, model: {run.model}, log: {run.metrics}", soft_wrap=True)


def _free(out: Path) -> Path:
    """Return `out`, or the next free name beside it: an earlier demo is never overwritten."""
    number, folder = 1, out
    while folder.exists():
        number += 1
        folder = out.with_name(f"{out.name}-{number}")
    return folder
