"""Validation of the tracker addresses in a recipe."""

import os
from collections.abc import Sequence
from pathlib import Path

from weft.foundation.errors import UserError

ALLOWED = "WEFT_ALLOW_TRACKER"
"""environment variable: space-separated addresses to which a recipe may send its log"""


def require_allowed(uri: str, allowed: Sequence[str]) -> None:
    """Raise UserError if the user has not allowed the address; `allowed` are the values of --allow-tracker."""
    known = [*allowed, *os.environ.get(ALLOWED, "").split()]
    if not uri.startswith(("http://", "https://")):
        raise UserError(
            f"trackers: found the uri {uri!r}; a recipe supports http(s)://HOST and sqlite:///FILE. "
            "For any other uri, set MLFLOW_TRACKING_URI"
        )
    if uri.rstrip("/") not in [address.rstrip("/") for address in known]:
        raise UserError(
            f"trackers: the recipe sends the log to {uri}, which you have not allowed. If you trust it, add "
            f"--allow-tracker {uri} to `weft train`, or set {ALLOWED}; with MLFLOW_TRACKING_URI={uri} it also receives "
            "the credentials of your environment"
        )


def database_inside(run: Path, uri: str) -> str:
    """Resolve a recipe's sqlite uri relative to the run folder; raise UserError if the file is outside of it."""
    file = uri.removeprefix("sqlite:///")
    folder = run.resolve()
    place = (folder / file).resolve()
    if file == uri or not file or "?" in file or file.startswith("file:") or folder not in place.parents:
        raise UserError(f"trackers: found the uri {uri!r}; expected sqlite:///FILE with a FILE inside the run folder")
    return f"sqlite:///{place}"
