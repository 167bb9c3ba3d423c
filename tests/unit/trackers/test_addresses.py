"""Where a recipe may send the log of a run, and with whose credentials."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from weft.foundation.errors import UserError
from weft.trackers.follower import Follower
from weft.trackers.mlflow import MlflowConfig

STEP = {"event": "step", "step": 3, "losses": {"a": 0.5}}
SECRETS = {"MLFLOW_TRACKING_TOKEN": "s3cret", "MLFLOW_TRACKING_USERNAME": "me", "MLFLOW_TRACKING_PASSWORD": "s3cret"}


class Elsewhere(BaseHTTPRequestHandler):
    """Answers as an MLflow server does, and remembers what it was sent."""

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.heard.append((self.path, dict(self.headers), body.decode()))  # type: ignore[attr-defined]
        run = {"info": {"run_id": "r1", "run_uuid": "r1", "experiment_id": "7", "status": "RUNNING"}, "data": {}}
        content = {"experiment": {"experiment_id": "7", "name": "weft"}, "run": run, "run_info": run["info"]}
        text = json.dumps(content if "mlflow" in self.path else {}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = _answer  # noqa: N815

    def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002


@pytest.fixture
def elsewhere() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    server.heard = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def _environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MLFLOW_TRACKING_URI", "WEFT_ALLOW_TRACKER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    (tmp_path / ".netrc").write_text("default login me password s3cret\n")
    (tmp_path / ".mlflow").mkdir()
    (tmp_path / ".mlflow" / "credentials").write_text("[mlflow]\nmlflow_tracking_username = me\n")


def address(server: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_port}"


def follow(config: MlflowConfig, run: Path, *allowed: str) -> list[str]:
    notes: list[str] = []
    follower = Follower(config.build(run, "title", {"epochs": 1}, allowed), notes.append)
    follower(STEP)
    follower.close()
    return notes


def test_an_address_that_only_the_recipe_names_is_rejected(elsewhere: ThreadingHTTPServer, tmp_path: Path) -> None:
    uri = address(elsewhere)
    with pytest.raises(UserError, match=f"--allow-tracker {uri}"):
        follow(MlflowConfig(uri=uri), tmp_path)
    with pytest.raises(UserError, match="you have not allowed"):
        follow(MlflowConfig(uri=uri), tmp_path, uri + ".example.org")
    assert elsewhere.heard == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("by", ["option", "environment"])
def test_an_allowed_address_gets_the_log_and_no_credentials(
    elsewhere: ThreadingHTTPServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    pytest.importorskip("mlflow")
    uri = address(elsewhere)
    if by == "environment":
        monkeypatch.setenv("WEFT_ALLOW_TRACKER", f"http://other.example {uri}/")
    for _ in range(2):  # the second time it goes on with its run
        assert follow(MlflowConfig(uri=uri), tmp_path, *([uri] if by == "option" else [])) == []
    heard = elsewhere.heard  # type: ignore[attr-defined]
    assert any("log-batch" in path and "loss/a" in body for path, _, body in heard)
    assert any("log-parameter" in path and "epochs" in body for path, _, body in heard)
    for path, headers, body in heard:
        assert "Authorization" not in headers, path
        assert "s3cret" not in json.dumps(headers) + body


def test_the_users_own_server_gets_the_users_credentials(
    elsewhere: ThreadingHTTPServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address(elsewhere))
    for config in (MlflowConfig(), MlflowConfig(uri=address(elsewhere))):
        follow(config, tmp_path)
    heard = elsewhere.heard  # type: ignore[attr-defined]
    assert heard
    assert all("Authorization" in headers for _, headers, _ in heard)


@pytest.mark.parametrize(
    "uri",
    [
        "sqlite:////tmp/elsewhere.db",
        "sqlite:///../elsewhere.db",
        "sqlite:///a/../../elsewhere.db",
        "sqlite:///file:elsewhere.db?uri=true",
        "sqlite:///",
        "sqlite://elsewhere.db",
        "sqlite:elsewhere.db",
    ],
)
def test_a_database_outside_the_run_is_rejected(uri: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="inside the run folder"):
        MlflowConfig(uri=uri).build(tmp_path / "run", "title", {})


def test_a_database_inside_the_run_is_used(tmp_path: Path) -> None:
    pytest.importorskip("mlflow")
    built = MlflowConfig(uri="sqlite:///my.db").build(tmp_path / "run", "title", {})
    assert built.uri == f"sqlite:///{(tmp_path / 'run').resolve() / 'my.db'}"


@pytest.mark.parametrize("uri", ["databricks", "file:///etc", "postgresql://host/x", "ftp://host", "mlruns"])
def test_other_kinds_of_addresses_are_for_the_environment(uri: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="MLFLOW_TRACKING_URI"):
        MlflowConfig(uri=uri).build(tmp_path, "title", {}, [uri])
