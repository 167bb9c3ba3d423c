"""Terminal output of scores and of the result of a run."""

from collections.abc import Collection, Mapping

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from weft.evaluation.table import shown
from weft.kinds.metrics import METRICS, explain, title
from weft.report.live import clock, marked
from weft.runs.folder import RunPaths
from weft.runs.records import RunResult, UntrainedScores


def score_table(
    scores: Mapping[str, Mapping[str, float | None]],
    overall: float | None,
    before: Mapping[str, Mapping[str, float | None]] | None = None,
    before_overall: float | None = None,
    split: str = "dev",
    untrained: Collection[str] = (),
    auxiliary: Collection[str] = (),
) -> Group:
    """Build a table of scores by task, the primary metric first; `before` adds a column of earlier scores.

    Notes below the table explain how the overall score is computed and what its metrics average over.
    """
    measured = {task: [metric for metric in values if metric in METRICS] for task, values in scores.items()}
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("task")
    table.add_column("metric")
    if before:
        table.add_column("before", justify="right")
    table.add_column(split, justify="right", style="bold")
    table.add_column("rows", justify="right")
    for task, values in scores.items():
        for i, metric in enumerate(measured[task]):
            cells = [marked(task, untrained, auxiliary) if i == 0 else "", title(metric)]
            if before:
                cells.append(shown(before[task][metric]))
            cells += [shown(values[metric]), f"{values['n']:,}" if i == 0 else ""]
            table.add_row(*cells, style=None if i == 0 else "dim")
    cells = ["overall", ""] + ([shown(before_overall)] if before else [])
    table.add_row(*cells, shown(overall), "")
    return Group(table, *(Text(line, style="dim") for line in explain(measured, {}, auxiliary)))


def show_result(console: Console, result: RunResult, run: RunPaths) -> None:
    """Print the result of a run: scores before and after, training time, and the path of the model."""
    before = result.before or UntrainedScores()
    console.print()
    scores = (result.dev, result.overall, before.dev, before.overall)
    console.print(score_table(*scores, untrained=result.untrained, auxiliary=result.auxiliary))
    if result.untrained:
        trained = [task for task in result.dev if task not in (*result.untrained, *result.auxiliary)]
        console.print(f"\nThe best epoch was chosen by {', '.join(trained)}: {shown(result.selection)}")
    stopped_early = result.planned_steps is not None and result.steps < result.planned_steps
    planned = f" of {result.planned_steps:,}" if stopped_early else ""
    console.print(
        f"\n{result.steps:,}{planned} steps in {clock(result.seconds)}, best after step {result.best_step:,}. "
        f"The model is in {run.model}, a report in {run.report}",
        soft_wrap=True,
    )
