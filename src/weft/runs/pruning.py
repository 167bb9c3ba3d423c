"""Frees what only resuming needs: the checkpoints of a run that has ended."""

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
    """What was cleared away."""

    checkpoints: int
    size: int
    """bytes"""


def prune(path: Path, *, unfinished: bool = False) -> Freed:
    """Delete the checkpoints of a run. One that has not ended needs them: it is pruned only if `unfinished`."""
    paths = RunPaths(path)
    if not paths.is_run:
        raise UserError(
            f"{path}: is not a run folder; expected one that `weft train` made, with {paths.recipe.name} in it"
        )
    if not unfinished and not paths.has_ended:
        raise UserError(
            f"{path}: has not finished, so its checkpoints are needed to go on with --resume; "
            "with --unfinished they are deleted all the same"
        )
    with closing(RunFolder(path, resume=True)):
        folder = paths.checkpoints
        files = [file for file in folder.rglob("*") if file.is_file()]  # a run folder with links was rejected
        freed = Freed(len(list(folder.glob("step-*"))), sum(file.stat().st_size for file in files))
        if folder.is_dir():
            # the mark comes first: a run that is half deleted must not look like one that never began
            write_whole(paths.pruned, json.dumps({"checkpoints": freed.checkpoints, "bytes": freed.size}) + "\n")
            shutil.rmtree(folder)
        return freed


def refuse_pruned(path: Path) -> None:
    """A run whose checkpoints were deleted would begin anew, over its own results."""
    paths = RunPaths(path)
    ended = paths.has_ended and not any(paths.checkpoints.glob("step-*"))
    if ended or paths.pruned.is_file():
        raise UserError(
            f"{path}: was pruned: the checkpoints that --resume needs are deleted; its model and results stay as they "
            f"are. To train on from its model, start another run with --body {path} -o NEW_RUN"
        )
