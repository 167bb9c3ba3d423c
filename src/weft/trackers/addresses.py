"""Which addresses a recipe may name for its log."""

import os
from collections.abc import Sequence
from pathlib import Path

from weft.foundation.errors import UserError

ALLOWED = "WEFT_ALLOW_TRACKER"
"""environment variable: the addresses, divided by spaces, that a recipe may send its log to"""


def require_allowed(uri: str, allowed: Sequence[str]) -> None:
    """Reject an address that only the recipe names; `allowed` are those of --allow-tracker."""
    known = [*allowed, *os.environ.get(ALLOWED, "").split()]
    if not uri.startswith(("http://", "https://")):
        raise UserError(
            f"trackers: found the uri {uri!r}; in a recipe it is http(s)://HOST or sqlite:///FILE. "
            "Set MLFLOW_TRACKING_URI for any other"
        )
    if uri.rstrip("/") not in [address.rstrip("/") for address in known]:
        raise UserError(
            f"trackers: the recipe sends the log to {uri}, which you have not allowed. If you trust it, add "
            f"--allow-tracker {uri} to `weft train`, or set {ALLOWED}; with MLFLOW_TRACKING_URI={uri} it gets the "
            "credentials of your environment too"
        )


def database_inside(run: Path, uri: str) -> str:
    """The sqlite file that a recipe names, relative to the run folder and not outside of it."""
    file = uri.removeprefix("sqlite:///")
    folder = run.resolve()
    place = (folder / file).resolve()
    if file == uri or not file or "?" in file or file.startswith("file:") or folder not in place.parents:
        raise UserError(f"trackers: found the uri {uri!r}; expected sqlite:///FILE with a FILE inside the run folder")
    return f"sqlite:///{place}"
