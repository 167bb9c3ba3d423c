"""The sentences of a report."""

import numpy as np

from weft.report.scores import Scores
from weft.runs.reader import Run


def duration(seconds: float) -> str:
    """Format seconds as M:SS or H:MM:SS."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def lead(run: Run) -> str:
    tasks = run.task_names
    what = f"{len(tasks)} tasks" if len(tasks) > 1 else f"One task ({tasks[0]})"
    steps = f"{run.steps_done:,} steps"
    state = f"trained for {steps}" if run.result else f"interrupted after {steps}"
    body = run.recipe.get("body", "")
    shown = body if body.startswith("packaged:") else body.rstrip("/").rpartition("/")[2]
    return f"{what} on one body ({shown}), {state}, seed {run.recipe.get('seed')}."


def facts(run: Run, scores: Scores) -> list[tuple[str, str, str]]:
    """Return (name, value, detail) of the key figures."""
    overall, best = scores.overall, run.best
    found = []
    if overall.value is not None and overall.value == overall.value:
        span = f"95 %: {overall.interval.low:.3f} to {overall.interval.high:.3f}" if overall.interval else ""
        found.append(("overall dev score", f"{overall.value:.3f}", span))
    if best is not None:
        last = max(record.epoch for record in run.evaluations)
        found.append(("best epoch", f"{best.epoch} of {last}", f"after step {best.step:,}"))
    found.append(("training time", duration(run.seconds), f"{run.steps_done:,} steps"))
    if len(run.steps) > 1:
        # the median, because some steps include an evaluation
        cost = float(np.median(np.diff([record.seconds for record in run.steps])))
        tokens = float(np.mean([record.tokens for record in run.steps]))
        # steps on stored outputs of a frozen body process no tokens
        rate = f"{tokens / cost:,.0f} tokens per second" if cost > 0 and tokens > 0 else ""
        found.append(("cost per step", f"{cost:.2f} s", rate))
    if run.result is not None:
        found.append(("parameters", _millions(run.result.parameters), "body and heads"))
    return found


def _millions(number: int) -> str:
    return f"{number / 1e6:.1f} M" if number >= 1e6 else f"{number:,}"


def notes(run: Run) -> list[str]:
    """Return caveats about the scores."""
    found = []
    if run.result is None:
        found.append(f"{run.label} is not finished: these are its scores so far. Continue it with `--resume`.")
    untrained = run.untrained
    if untrained:
        trained = [name for name in run.task_names if name not in untrained]
        found.append(
            f"Not trained in this run: {', '.join(untrained)}. They count in the overall score, but the best epoch was "
            f"selected by {', '.join(trained)} only."
        )
    if run.result is not None and run.result.selected_on:
        counts = ", ".join(f"{rows:,} of {name}" for name, rows in run.result.selected_on.items())
        found.append(
            f"The best epoch was selected, and the curves and the scores of untrained heads were measured, on a fixed "
            f"sample of the dev rows ({counts}). All other dev scores are those of the best model on all dev rows."
        )
    small = [f"{name} ({len(task.targets)})" for name, task in run.tasks.items() if len(task.targets) < 200]
    if small:
        found.append(f"Few dev rows: {', '.join(small)}. Differences smaller than the intervals are not significant.")
    pairs = [name for name, task in run.recipe["tasks"].items() if task.get("reading", "single") != "single"]
    if run.recipe.get("body") == "packaged:minilm-l6" and pairs:
        found.append(
            "The packaged MiniLM-L6 was trained on Quora duplicates and NLI pairs, among others: "
            f"its scores on {', '.join(pairs)} are not comparable with those of BERT base."
        )
    return found


def missing(run: Run) -> list[str]:
    """Return what is missing from the report, and how to add it."""
    found = []
    if not run.evaluations:
        found.append("Scores: the run was interrupted before its first evaluation.")
    elif run.before is None:
        found.append("Scores of the untrained heads: a run with a budget is evaluated only at its end.")
    if run.best is not None and run.best.train is None:
        found.append("Scores on train rows: `log.train_rows` was 0, or an older version of weft wrote the run.")
    if run.best is not None and run.best.losses is None:
        found.append("Dev losses: an older version of weft wrote the run.")
    absent = [name for name in run.task_names if name not in run.tasks]
    if absent:
        found.append(f"Dev rows of {', '.join(absent)}: there are no predictions yet.")
    flat = [name for name, task in run.tasks.items() if task.plane is None]
    if flat:
        found.append(f"Embeddings of {', '.join(flat)}: an older version of weft wrote the predictions.")
    if not run.conflicts and len(run.task_names) > 1:
        found.append("Gradient conflicts: not logged; set `log.conflicts_every = 10` in the recipe.")
    if run.bias is None:
        found.append("Bias probe: run `weft probe RUN`, then create the report again.")
    return found
