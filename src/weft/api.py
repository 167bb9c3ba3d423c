"""From Python in one call: training, and answers for files."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.data.empty import OnEmpty
from weft.data.frames import Table, frames_of
from weft.data.tables import VECTOR_ENDINGS, require_writable
from weft.evaluation.scoring import Evaluation
from weft.foundation.errors import Interrupted
from weft.inference.bulk import SHARD_ROWS, job
from weft.inference.bulk.work import Answers, Vectors
from weft.inference.model import Model, load
from weft.recipes.recipe import Recipe, load_recipe, with_given
from weft.report.live import SafeConsole, Watcher
from weft.run import train_run
from weft.training.checkpoint import Progress
from weft.training.distributed import join
from weft.training.loop import TrainListener
from weft.training.step import StepReport


class Quiet:
    """A listener that says nothing."""

    def started(self, progress: Progress, steps: int) -> None: ...
    def stepped(self, step: int, report: StepReport, seconds: float) -> None: ...
    def evaluated(self, evaluation: Evaluation, is_best: bool) -> None: ...
    def noted(self, message: str) -> None: ...


def train(
    recipe: str | Path | Recipe | Mapping[str, Any],
    out: str | Path,
    *,
    data: Mapping[str, Mapping[str, Table]] | None = None,
    data_dir: str | Path | None = None,
    body: str | None = None,
    settings: Sequence[str] = (),
    seed: int | None = None,
    steps: int | None = None,
    device: str = "auto",
    resume: bool = False,
    allow_trackers: Sequence[str] = (),
    trust_code: bool = False,
    listener: TrainListener | None = None,
    progress: bool = True,
) -> Model:
    """Train a recipe (a file, a shipped name, a dictionary or a Recipe) into the folder `out` and load the result.

    `data` gives rows instead of files, `{"stars": {"train": frame, "dev": frame2}}`: data frames of pandas or polars,
    Arrow tables, data sets, dictionaries of columns or lists of dictionaries, in the columns that the recipe names.
    `settings` are overrides such as `["optimizer.lr=3e-5"]`; `steps` is a budget of optimizer steps;
    `allow_trackers` are the addresses that the recipe may send its log to. `trust_code` allows the
    recipe to name code of your own by `use`, which is imported. In a terminal and in a notebook a
    progress bar, notes and scores are shown, unless `progress` is False or a `listener` takes their
    place. In a script that torchrun starts, all of its processes train one run together.
    """
    frames = frames_of(data or {})
    given = {task: list(own) for task, own in frames.items()}
    if not isinstance(recipe, Recipe):
        directory = Path(data_dir) if data_dir is not None else None
        recipe = load_recipe(recipe, settings=settings, body=body, seed=seed, data_dir=directory, given=given)
    elif settings or body is not None or seed is not None or data_dir is not None:
        raise TypeError("settings, body, seed and data_dir change a recipe that is loaded; a Recipe is taken as it is")
    else:
        recipe = with_given(recipe, given)
    with join(device) as processes:
        watcher = (listener or _watcher(progress)) if processes.leads else Quiet()
        try:
            train_run(
                recipe,
                Path(out),
                watcher,
                steps=steps,
                device=device,
                resume=resume,
                allow_trackers=allow_trackers,
                trust_code=trust_code,
                processes=processes,
                frames=frames,
            )
        except Interrupted:
            raise Interrupted(
                f"stopped; everything up to here is saved in {out}. To go on, call weft.train again with resume=True"
            ) from None
        finally:
            if isinstance(watcher, Watcher):
                watcher.close()
    model = load(out, device, trust_code=trust_code)
    model.frames = frames
    return model


def _watcher(progress: bool) -> TrainListener:
    """Something to look at where somebody looks: in a terminal or a notebook, not in a log."""
    console = SafeConsole()
    return Watcher(console) if progress and (console.is_jupyter or sys.stdout.isatty()) else Quiet()


def predict_file(
    model: str | Path,
    task: str | Sequence[str] | None,
    source: str | Path,
    output: str | Path,
    *,
    keep_columns: Sequence[str] | None = None,
    on_empty: OnEmpty | None = None,
    device: str = "auto",
    executor: str = "local",
    shard_rows: int = SHARD_ROWS,
    raw_csv: bool = False,
    trust_code: bool = False,
    listener: job.BulkListener | None = None,
) -> int:
    """Answer for every row of a file of any size, as `weft predict --input --output`; returns the number of rows.

    `task` is one task, several, or None for all, which are answered in one pass. `keep_columns` are the columns of the
    input that pass through to the output, all by default, `[]` for none. `on_empty` is "error", "skip" or "keep";
    defaults to the rule of each task. `trust_code` allows the model to name code, which is imported.
    """
    require_writable(Path(output))
    tasks = (task,) if isinstance(task, str) else None if task is None else tuple(task)
    work = Answers(tasks, on_empty, None if keep_columns is None else tuple(keep_columns))
    asked = job.BulkJob(
        Path(model), work, Path(source), Path(output), device, executor, shard_rows, raw_csv, trust_code
    )
    return asked.run(listener or job.QuietBulk())


def embed_file(
    model: str | Path,
    source: str | Path,
    output: str | Path,
    *,
    task: str | None = None,
    on_empty: OnEmpty | None = None,
    device: str = "auto",
    executor: str = "local",
    shard_rows: int = SHARD_ROWS,
    trust_code: bool = False,
    listener: job.BulkListener | None = None,
) -> int:
    """A vector for every row, as `weft embed`; returns the number of rows."""
    require_writable(Path(output), VECTOR_ENDINGS)
    work = Vectors(task, on_empty)
    asked = job.BulkJob(
        Path(model), work, Path(source), Path(output), device, executor, shard_rows, trust_code=trust_code
    )
    return asked.run(listener or job.QuietBulk())
