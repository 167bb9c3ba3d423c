"""MLflow: a run on its server, or in a database of the run folder.

A recipe may come from a stranger, so the address in it is used only if the user allows it, and never gets the
credentials that the environment holds for another server.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from weft.atomic import write_whole
from weft.errors import UserError
from weft.trackers.base import Tracker
from weft.variants import Config

LONGEST = 500
"""letters of a parameter that MLflow accepts"""
ALLOWED = "WEFT_ALLOW_TRACKER"
"""environment variable: the addresses, divided by spaces, that a recipe may send its log to"""


class Mlflow(Tracker):
    def __init__(
        self, uri: str, experiment: str, run: Path, title: str, settings: dict[str, Any], *, anonymous: bool = False
    ) -> None:
        """`anonymous`: without any credentials of the environment or the home folder."""
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
        """a run that goes on goes on there too"""
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
    """The recipe's keys, `optimizer.lr` and so on."""
    if not isinstance(value, dict):
        return {key: str(value)[:LONGEST]}
    found: dict[str, str] = {}
    for name, inner in value.items():
        found |= _parameters(inner, f"{key}.{name}" if key else str(name))
    return found


@contextmanager
def without_netrc() -> Iterator[None]:
    """~/.netrc may have a default entry, which the HTTP library would send to any server."""
    before = os.environ.get("NETRC")
    os.environ["NETRC"] = os.devnull
    try:
        yield
    finally:
        if before is None:
            del os.environ["NETRC"]
        else:
            os.environ["NETRC"] = before


class Anonymous:
    """As much of `MlflowClient` as is used here, for a server that must not get any credentials."""

    def __init__(self, tracking_uri: str) -> None:
        from mlflow.entities import Param
        from mlflow.entities.run_status import RunStatus
        from mlflow.store.tracking.rest_store import RestStore
        from mlflow.utils.rest_utils import MlflowHostCreds

        self.store: Any = RestStore(lambda: MlflowHostCreds(tracking_uri))
        self.param, self.status = Param, RunStatus.from_string

    @without_netrc()
    def get_experiment_by_name(self, name: str) -> Any:
        return self.store.get_experiment_by_name(name)

    @without_netrc()
    def create_experiment(self, name: str) -> Any:
        return self.store.create_experiment(name)

    @without_netrc()
    def create_run(self, experiment_id: str, run_name: str) -> Any:
        return self.store.create_run(experiment_id, "", int(time.time() * 1000), [], run_name)

    @without_netrc()
    def log_param(self, run_id: str, key: str, value: str) -> None:
        self.store.log_param(run_id, self.param(key, value))

    @without_netrc()
    def log_batch(self, run_id: str, metrics: Sequence[Any]) -> None:
        self.store.log_batch(run_id, metrics, [], [])

    @without_netrc()
    def update_run(self, run_id: str, status: str) -> None:
        self.store.update_run_info(run_id, self.status(status), None, None)

    @without_netrc()
    def set_terminated(self, run_id: str) -> None:
        self.store.update_run_info(run_id, self.status("FINISHED"), int(time.time() * 1000), None)


class MlflowConfig(Config):
    name: Literal["mlflow"] = "mlflow"
    uri: str | None = None
    """Address of the server, used only if the user allows it (`--allow-tracker`), or `sqlite:///FILE` inside the run
    folder. Defaults to MLFLOW_TRACKING_URI, and without it to the file RUN/mlflow.db."""
    experiment: str = "weft"
    """under which name MLflow gathers runs"""

    def build(self, run: Path, title: str, settings: dict[str, Any], allowed: Sequence[str] = ()) -> Mlflow:
        own = os.environ.get("MLFLOW_TRACKING_URI")
        rest = self.experiment, run, title, settings
        if self.uri is None or self.uri == own:  # the user's own server, with the user's own credentials
            return Mlflow(own or f"sqlite:///{run.resolve() / 'mlflow.db'}", *rest)
        if self.uri.startswith("sqlite:"):
            return Mlflow(_database_inside(run, self.uri), *rest)
        require_allowed(self.uri, allowed)
        return Mlflow(self.uri, *rest, anonymous=True)


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


def _database_inside(run: Path, uri: str) -> str:
    """The sqlite file that a recipe names, relative to the run folder and not outside of it."""
    file = uri.removeprefix("sqlite:///")
    folder = run.resolve()
    place = (folder / file).resolve()
    if file == uri or not file or "?" in file or file.startswith("file:") or folder not in place.parents:
        raise UserError(f"trackers: found the uri {uri!r}; expected sqlite:///FILE with a FILE inside the run folder")
    return f"sqlite:///{place}"
