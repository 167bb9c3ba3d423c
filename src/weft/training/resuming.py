"""Whether a run can be resumed: its checkpoints must be there, and it must be the same run."""

from pathlib import Path
from typing import Any

from weft.foundation.content import differences
from weft.foundation.errors import UserError
from weft.runs.folder import RunPaths
from weft.runs.pruning import refuse_pruned
from weft.training.checkpoint import settings_of


def refuse_other_run(out: Path, settings: dict[str, Any]) -> None:
    """Going on with another recipe would make a model that no recipe describes."""
    refuse_pruned(out)
    before = settings_of(RunPaths(out).checkpoints)
    if before is None or before == settings:
        return
    changes = list(differences(before, settings))
    found = "; ".join(f"{key}: was {old!r}, is now {new!r}" for key, old, new in changes)
    if {key for key, _, _ in changes} <= {"steps", "epochs"}:
        raise UserError(
            f"{out}: is a run of another length ({found}). The learning rate of every step follows from the length, so "
            "a run cannot be made longer or shorter afterwards. To go on with this run, leave out --budget or give its "
            f"own; to train on from its model, start another run with --body {out} -o NEW_RUN"
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
