"""An MLflow client that sends no credentials."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def without_netrc() -> Iterator[None]:
    """Disable ~/.netrc: it can have a default entry, which the HTTP library would send to any server."""
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
    """The subset of `MlflowClient` that weft uses, for servers that must not receive credentials."""

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
