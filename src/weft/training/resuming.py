"""Checks before a run is resumed: its checkpoints exist, and its settings are the same."""

from pathlib import Path
from typing import Any

from weft.foundation.content import differences
from weft.foundation.errors import UserError
from weft.runs.folder import RunPaths
from weft.runs.pruning import refuse_pruned
from weft.training.checkpoint import settings_of


def refuse_other_run(out: Path, settings: dict[str, Any]) -> None:
    """Raise UserError if a run cannot be resumed with these settings: no recipe would describe the model."""
    refuse_pruned(out)
    before = settings_of(RunPaths(out).checkpoints)
    if before is None or before == settings:
        return
    changes = list(differences(before, settings))
    found = "; ".join(f"{key}: was {old!r}, is now {new!r}" for key, old, new in changes)
    if {key for key, _, _ in changes} <= {"steps", "epochs"}:
        raise UserError(
            f"{out}: is a run of another length ({found}). The learning rate of every step depends on the length, so "
            "the length of a run cannot be changed later. To resume this run, leave out --budget or use its original "
            f"value; to continue training its model, start another run with --body {out} -o NEW_RUN"
        )
    if all(key.startswith("code.") for key, _, _ in changes):
        addresses = ", ".join(key.removeprefix("code.") for key, _, _ in changes)
        raise UserError(
            f"{out}: the source file of {addresses} has changed since the run was started, so it cannot be resumed "
            "exactly; restore the file, or start another run with -o"
        )
    raise UserError(
        f"{out}: was started with another recipe ({found}); "
        "resume with the recipe it was started with, or choose another folder with -o"
    )
