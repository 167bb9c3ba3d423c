"""`weft add`: trains a grown recipe and judges what became of the old tasks."""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np

from weft.data.frames import GivenFrames
from weft.evaluation.gate import When
from weft.foundation.errors import RunError, UserError
from weft.growth.compose import Keep, additions, grown_recipe
from weft.growth.remove import without_tasks
from weft.growth.texts import HeldTexts, texts_of_file, texts_of_tasks
from weft.inference.comparing import compare, require_max_drop, with_data_of
from weft.inference.model import Model, load
from weft.kinds.truth import Predictions
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
    unlabelled: Sequence[Path] = (),
    answers: int | None = None,
    data_dir: Path | None = None,
    files: Mapping[str, Path] | None = None,
    max_drop: float = 0.005,
    when: When = "possible",
    steps: int | None = None,
    device: str = "auto",
    resume: bool = False,
    trust_code: bool = False,
) -> RunResult:
    """Add the tasks of `recipe` to a trained model and write the run folder `out`; the model is not changed.

    Every old task is scored before and after on its dev rows, or on `files`: `gate` of the result. With `keep="exact"`
    the answers to these rows must be identical, which is verified. With `keep="distill"` the old tasks learn the
    answers of the old model to the new train texts and to those of the files `unlabelled`, at most `answers` of them.
    """
    require_max_drop(max_drop)
    if (unlabelled or answers is not None) and keep != "distill":
        option = f"--unlabelled {unlabelled[0]}" if unlabelled else f"--answers {answers}"
        raise UserError(f"{option}: has an effect with --keep distill only; leave it out")
    if answers is not None and answers < 1:
        raise UserError(f"--answers {answers}: expected at least 1")
    folder = model_folder(model).resolve()
    grown = grown_recipe(folder, read_model(folder), recipe, keep, data_dir, files)
    old = with_data_of(load(folder, device, trust_code=trust_code), grown)
    _require_dev_rows(old)
    frames = _held_frames(old, grown, unlabelled, answers) if keep == "distill" else None
    result = train_run(
        grown, out, listener, steps=steps, device=device, resume=resume, trust_code=trust_code, frames=frames
    )
    assert result is not None, "tasks are added by one process"
    with closing(RunFolder(out, resume=True)) as run:
        if extra := additions(grown):
            path = run.paths.model
            run.replace_folder(path, lambda to: without_tasks(path, extra, to, trust_code=trust_code))
        found = compare(old, load(out, device, trust_code=trust_code), max_drop=max_drop, when=when)
        before, after = _digests(found.old), _digests(found.new)
        if keep == "exact" and (changed := [task for task in before if before[task] != after[task]]):
            raise RunError(f"{out}: the answers of {', '.join(changed)} changed although their weights are frozen")
        kept = {task: KeptAnswers(before=before[task], after=after[task]) for task in before}
        result = replace(result, gate=found.gate, answers=kept)
        run.write_json(run.paths.result, result)
        write_report([out], run.paths.report)
    return result


def _require_dev_rows(old: Model) -> None:
    """Read the dev rows of all old tasks before anything is trained: the gate never leaves a task out."""
    for task in old.tasks:
        try:
            old.datasets([task], "dev")
        except UserError as error:
            raise UserError(
                f"the gate cannot judge the old task {task!r} without its dev rows: {error}. Name a file of labelled "
                f"rows with its columns, --file {task}=FILE, or remove the task first, with `weft remove`"
            ) from None


def _held_frames(old: Model, grown: Recipe, unlabelled: Sequence[Path], most: int | None) -> GivenFrames:
    """Return the rows without labels of each old task."""
    tasks = {name: grown.tasks[name] for name in old.tasks}
    new = [name for name in grown.tasks if name not in tasks]
    rows = chain(
        texts_of_tasks(grown, new, old.tokenizer),
        *(texts_of_file(path, list(tasks.values())) for path in unlabelled),
    )
    return HeldTexts.of(rows, grown.seed, most).frames(tasks)


def _digests(answers: Mapping[str, Predictions]) -> dict[str, str]:
    """Return the sha256 of a model's answers to the rows of each task, as float64."""
    return {task: hashlib.sha256(np.ascontiguousarray(own).tobytes()).hexdigest() for task, own in answers.items()}
