"""High-level Python API: train a recipe, predict or embed a file."""

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
from weft.inference.mining import MiningJob, MiningOptions, Mode
from weft.inference.model import Model, load
from weft.recipes.recipe import Recipe, load_recipe, with_given
from weft.report.live import SafeConsole, Watcher
from weft.run import train_run
from weft.training.checkpoint import Progress
from weft.training.distributed import join
from weft.training.listener import TrainListener
from weft.training.step import StepReport


class Quiet:
    """Listener that ignores all events."""

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
    """Train a recipe, write the run to the folder `out` and return the loaded model.

    `recipe` is a file, the name of a built-in recipe, a dictionary or a Recipe.
    `data` passes tables instead of files, for example `{"stars": {"train": frame, "dev": frame2}}`: pandas or polars
    data frames, Arrow tables, data sets, dictionaries of columns or lists of dictionaries, with the columns named in
    the recipe. `settings` are overrides such as `["optimizer.lr=3e-5"]`. `steps` is the budget of optimizer steps.
    `allow_trackers` lists the addresses that the recipe may send its log to. `trust_code` allows the recipe to import
    your own code, named by `use`. A terminal or notebook shows a progress bar, notes and scores, unless `progress` is
    False or a `listener` is given. In a script started by torchrun, all processes train one run together.
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
    """Return a progress display in a terminal or notebook, otherwise a silent listener."""
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
    """Write predictions for every row of a file of any size and return the number of rows.

    Equivalent to `weft predict --input --output`. `task` is one task, several tasks, or None for all tasks; several
    tasks share one pass. `keep_columns` are the input columns copied to the output. Defaults to all columns; `[]` keeps
    none. `on_empty` is "error", "skip" or "keep". Defaults to the rule of each task. `trust_code` allows the code that
    the model names to be imported.
    """
    require_writable(Path(output))
    tasks = (task,) if isinstance(task, str) else None if task is None else tuple(task)
    work = Answers(tasks, on_empty, None if keep_columns is None else tuple(keep_columns))
    asked = job.BulkJob(
        Path(model), work, Path(source), Path(output), device, executor, shard_rows, raw_csv, trust_code
    )
    return asked.run(listener or job.QuietBulk())


def mine_file(
    model: str | Path | None,
    source: str | Path,
    output: str | Path,
    *,
    mode: Mode = "pairs",
    top_k: int = 10,
    min_score: float | None = None,
    skip: int = 0,
    margin: float | None = None,
    task: str | None = None,
    device: str = "auto",
    trust_code: bool = False,
    listener: job.BulkListener | None = None,
) -> int:
    """Write the nearest pairs, neighbours or hard negatives of a file, like `weft mine`; return its number of rows.

    `source` is a file of texts, or an .npy file of vectors, for which `model` is None.
    """
    options = MiningOptions(mode, top_k, min_score, skip, margin)
    folder = None if model is None else Path(model)
    asked = MiningJob(Path(source), Path(output), options, folder, task, device, trust_code)
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
    """Write an embedding for every row of a file, like `weft embed`, and return the number of rows."""
    require_writable(Path(output), VECTOR_ENDINGS)
    work = Vectors(task, on_empty)
    asked = job.BulkJob(
        Path(model), work, Path(source), Path(output), device, executor, shard_rows, trust_code=trust_code
    )
    return asked.run(listener or job.QuietBulk())
