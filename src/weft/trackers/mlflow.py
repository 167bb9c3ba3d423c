"""MLflow tracker: logs to a server, or to a database in the run folder.

A recipe can be untrusted, so its address is used only if the user allows it, and never receives the credentials that
the environment has for another server.
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from weft.foundation.atomic import write_whole
from weft.foundation.config import Config
from weft.foundation.errors import UserError
from weft.trackers.addresses import database_inside, require_allowed
from weft.trackers.anonymous import Anonymous
from weft.trackers.base import Tracker

LONGEST = 500
"""maximum number of characters of an MLflow parameter"""


class Mlflow(Tracker):
    """Logs to an MLflow run. A resumed run continues the same MLflow run."""

    def __init__(
        self, uri: str, experiment: str, run: Path, title: str, settings: dict[str, Any], *, anonymous: bool = False
    ) -> None:
        """With `anonymous`, send no credentials of the environment or the home folder."""
        try:
            from mlflow.entities import Metric
            from mlflow.tracking import MlflowClient
        except ImportError:
            raise UserError(
                "trackers: 'mlflow' is not installed; pip install \"weft[track]\", or leave it out"
            ) from None
        self.connect, self.metric = (Anonymous if anonymous else MlflowClient), Metric
        self.uri, self.experiment, self.title, self.settings = uri, experiment, title, settings
        self.memory = run / "mlflow-run-id"
        """file with the id of the MLflow run, which a resumed run continues"""
        self.client: Any = None
        self.id = ""

    def log(self, step: int, values: dict[str, float]) -> None:
        if self.client is None:
            self._open()
        now = int(time.time() * 1000)
        batch = [self.metric(name, value, now, step) for name, value in values.items()]
        self.client.log_batch(self.id, metrics=batch)

    def close(self) -> None:
        if self.client is not None:
            self.client.set_terminated(self.id)

    def _open(self) -> None:
        self.client = self.connect(tracking_uri=self.uri)
        if self.memory.exists():
            self.id = self.memory.read_text(encoding="utf-8").strip()
            self.client.update_run(self.id, status="RUNNING")
            return
        found = self.client.get_experiment_by_name(self.experiment)
        number = found.experiment_id if found else self.client.create_experiment(self.experiment)
        self.id = self.client.create_run(number, run_name=self.title).info.run_id
        for key, value in _parameters(self.settings).items():
            self.client.log_param(self.id, key, value)
        write_whole(self.memory, self.id + "\n")


def _parameters(value: Any, key: str = "") -> dict[str, str]:
    """Flatten a recipe to keys such as `optimizer.lr`."""
    if not isinstance(value, dict):
        return {key: str(value)[:LONGEST]}
    found: dict[str, str] = {}
    for name, inner in value.items():
        found |= _parameters(inner, f"{key}.{name}" if key else str(name))
    return found


class MlflowConfig(Config):
    name: Literal["mlflow"] = "mlflow"
    uri: str | None = None
    """Address of the server, used only if the user allows it (`--allow-tracker`), or `sqlite:///FILE` inside the run
    folder. Defaults to MLFLOW_TRACKING_URI, and without it to the file RUN/mlflow.db."""
    experiment: str = "weft"
    """Name of the MLflow experiment."""

    def build(self, run: Path, title: str, settings: dict[str, Any], allowed: Sequence[str] = ()) -> Mlflow:
        own = os.environ.get("MLFLOW_TRACKING_URI")
        rest = self.experiment, run, title, settings
        if self.uri is None or self.uri == own:  # the user's server may receive the user's credentials
            return Mlflow(own or f"sqlite:///{run.resolve() / 'mlflow.db'}", *rest)
        if self.uri.startswith("sqlite:"):
            return Mlflow(database_inside(run, self.uri), *rest)
        require_allowed(self.uri, allowed)
        return Mlflow(self.uri, *rest, anonymous=True)
