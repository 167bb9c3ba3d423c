"""What a report says in words about a run."""

import numpy as np

from weft.report.scores import Scores
from weft.runs.reader import Run


def duration(seconds: float) -> str:
    """1:05 is a minute and five seconds, 2:01:05 two hours more."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def lead(run: Run) -> str:
    tasks = run.task_names
    what = f"{len(tasks)} tasks" if len(tasks) > 1 else f"One task ({tasks[0]})"
    steps = f"{run.steps_done:,} steps"
    state = f"trained for {steps}" if run.result else f"stopped after {steps}, before its end"
    body = run.recipe.get("body", "")
    shown = body if body.startswith("packaged:") else body.rstrip("/").rpartition("/")[2]
    return f"{what} on one body ({shown}), {state}, seed {run.recipe.get('seed')}."


def facts(run: Run, scores: Scores) -> list[tuple[str, str, str]]:
    """(name, value, detail) of what a reader wants to know first."""
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
        # the median: between some steps lie evaluations
        cost = float(np.median(np.diff([record.seconds for record in run.steps])))
        tokens = float(np.mean([record.tokens for record in run.steps]))
        rate = f"{tokens / cost:,.0f} tokens a second" if cost > 0 else ""
        found.append(("cost per step", f"{cost:.2f} s", rate))
    if run.result is not None:
        found.append(("parameters", _millions(run.result.parameters), "body and heads"))
    return found


def _millions(number: int) -> str:
    return f"{number / 1e6:.1f} M" if number >= 1e6 else f"{number:,}"


def notes(run: Run) -> list[str]:
    """What a reader must know before trusting the scores."""
    found = []
    if run.result is None:
        found.append(f"{run.label} has not come to its end: these are the scores up to here. `--resume` goes on.")
    untrained = run.untrained
    if untrained:
        trained = [name for name in run.task_names if name not in untrained]
        found.append(
            f"Not trained in this run: {', '.join(untrained)}. They are scored and count in the overall score, but the "
            f"best epoch was chosen by {', '.join(trained)} alone."
        )
    small = [f"{name} ({len(task.targets)})" for name, task in run.tasks.items() if len(task.targets) < 200]
    if small:
        found.append(f"Few dev rows: {', '.join(small)}. Differences smaller than the intervals mean nothing.")
    pairs = [name for name, task in run.recipe["tasks"].items() if task.get("reading", "single") != "single"]
    if run.recipe.get("body") == "packaged:minilm-l6" and pairs:
        found.append(
            "The packaged MiniLM-L6 was trained on Quora duplicates and NLI pairs among others: "
            f"its scores on {', '.join(pairs)} are not comparable with those of BERT base."
        )
    return found


def missing(run: Run) -> list[str]:
    """What the page would show if the run had written it, and how to get it."""
    found = []
    if not run.evaluations:
        found.append("Scores: the run was stopped before its first evaluation.")
    elif run.before is None:
        found.append("Scores of the untrained heads: a run with a budget is scored at its end only.")
    if run.best is not None and run.best.train is None:
        found.append("Scores on train rows: `log.train_rows` was 0, or the run is older than that log.")
    if run.best is not None and run.best.losses is None:
        found.append("Dev losses: the run is older than that log.")
    absent = [name for name in run.task_names if name not in run.tasks]
    if absent:
        found.append(f"Everything about the dev rows of {', '.join(absent)}: there are no predictions yet.")
    flat = [name for name, task in run.tasks.items() if task.plane is None]
    if flat:
        found.append(f"Embeddings of {', '.join(flat)}: the run is older than that part of its predictions.")
    if not run.conflicts and len(run.task_names) > 1:
        found.append("Gradient conflicts: they were not logged; `log.conflicts_every = 10` in the recipe does it.")
    if run.bias is None:
        found.append("A bias probe: `weft probe RUN` makes one, and the next report shows it.")
    return found
