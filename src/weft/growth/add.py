"""`weft add`: trains a grown recipe and judges what became of the old tasks."""

import hashlib
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

from weft.data.dataset import Dataset
from weft.evaluation.gate import When
from weft.foundation.errors import RunError
from weft.growth.compose import Keep, additions, grown_recipe
from weft.growth.remove import without_tasks
from weft.inference.comparing import compare, require_max_drop
from weft.inference.evaluate import evaluate
from weft.inference.model import Model, load
from weft.recipes.recipe import Recipe
from weft.report.page import write_report
from weft.run import train_run
from weft.runs.folder import RunFolder
from weft.runs.model_folder import model_folder, read_model
from weft.runs.records import KeptAnswers, RunResult
from weft.training.listener import TrainListener


def add(
    model: Path,
    recipe: Recipe,
    out: Path,
    listener: TrainListener,
    *,
    keep: Keep,
    data_dir: Path | None = None,
    max_drop: float = 0.005,
    when: When = "possible",
    steps: int | None = None,
    device: str = "auto",
    resume: bool = False,
    trust_code: bool = False,
) -> RunResult:
    """Add the tasks of `recipe` to a trained model and write the run folder `out`; the model is not changed.

    Every old task is scored before and after on its dev rows: `gate` of the result. With `keep="exact"` the answers to
    these rows must be identical, which is verified.
    """
    require_max_drop(max_drop)
    folder = model_folder(model)
    grown = grown_recipe(folder, read_model(folder), recipe, keep)
    old = load(folder, device, trust_code=trust_code)
    rows = old.datasets(old.tasks, "dev", data_dir)  # fails before anything is trained
    result = train_run(grown, out, listener, steps=steps, device=device, resume=resume, trust_code=trust_code)
    assert result is not None, "tasks are added by one process"
    with closing(RunFolder(out, resume=True)) as run:
        if extra := additions(grown):
            path = run.paths.model
            run.replace_folder(path, lambda to: without_tasks(path, extra, to, trust_code=trust_code))
        new = load(out, device, trust_code=trust_code)
        before, after = _digests(old, rows), _digests(new, rows)
        if keep == "exact" and (changed := [task for task in before if before[task] != after[task]]):
            raise RunError(f"{out}: the answers of {', '.join(changed)} changed although their weights are frozen")
        kept = {task: KeptAnswers(before=before[task], after=after[task]) for task in before}
        gate = compare(old, new, data_dir=data_dir, max_drop=max_drop, when=when)
        result = replace(result, gate=gate, answers=kept)
        run.write_json(run.paths.result, result)
        write_report([out], run.paths.report)
    return result


def _digests(model: Model, rows: Mapping[str, Dataset]) -> dict[str, str]:
    """Return the sha256 of the model's answers to the rows of each task, as float64."""
    metrics = {
        task: (model.config.tasks[task].metrics or own.labels.kind.default_metrics) for task, own in rows.items()
    }
    answers = evaluate(model.engine, rows, metrics).predictions
    return {task: hashlib.sha256(np.ascontiguousarray(own).tobytes()).hexdigest() for task, own in answers.items()}
