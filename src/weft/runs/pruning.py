"""Deletes the checkpoints of a run that has ended; only resuming needs them."""

import json
import shutil
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from weft.foundation.atomic import write_whole
from weft.foundation.errors import UserError
from weft.runs.folder import RunFolder, RunPaths


@dataclass(frozen=True)
class Freed:
    """What was deleted."""

    checkpoints: int
    size: int
    """bytes"""


def prune(path: Path, *, unfinished: bool = False) -> Freed:
    """Delete the checkpoints of a run. A run that has not ended needs them and is pruned only if `unfinished`."""
    paths = RunPaths(path)
    if not paths.is_run:
        raise UserError(
            f"{path}: is not a run folder; expected one that `weft train` made, with {paths.recipe.name} in it"
        )
    if not unfinished and not paths.has_ended:
        raise UserError(
            f"{path}: has not finished, so its checkpoints are needed to continue with --resume; "
            "use --unfinished to delete them anyway"
        )
    with closing(RunFolder(path, resume=True)):
        folder = paths.checkpoints
        files = [file for file in folder.rglob("*") if file.is_file()]  # a run folder with links was rejected
        freed = Freed(len(list(folder.glob("step-*"))), sum(file.stat().st_size for file in files))
        if folder.is_dir():
            # written before the deletion: a half-deleted run must not look like one that never started
            write_whole(paths.pruned, json.dumps({"checkpoints": freed.checkpoints, "bytes": freed.size}) + "\n")
            shutil.rmtree(folder)
        return freed


def refuse_pruned(path: Path) -> None:
    """Raise UserError for a pruned run: resuming it would restart it and overwrite its results."""
    paths = RunPaths(path)
    ended = paths.has_ended and not any(paths.checkpoints.glob("step-*"))
    if ended or paths.pruned.is_file():
        raise UserError(
            f"{path}: was pruned: the checkpoints that --resume needs are deleted; its model and results are intact. "
            f"To continue from its model, start another run with --body {path} -o NEW_RUN"
        )
