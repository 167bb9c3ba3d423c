"""What trackers get, and what happens to one that fails."""

import json
import sys
from pathlib import Path

import pytest

from weft.foundation.errors import UserError
from weft.trackers.base import Tracker, numbers
from weft.trackers.follower import Follower
from weft.trackers.mlflow import MlflowConfig
from weft.trackers.tensorboard import TensorboardConfig

STEP = {"event": "step", "step": 3, "losses": {"a": 0.5}, "lr": 1e-5, "weights": {"a": 1.0}, "rows": "da65ffce"}
EVALUATION = {
    "event": "evaluation",
    "step": 4,
    "dev": {"a": {"accuracy": 0.5, "n": 9}},
    "losses": {"a": 0.7},
    "overall": 0.5,
    "best": True,
}
CONFLICTS = {"event": "conflicts", "step": 4, "cosines": {"a|b": -0.2}, "layers": None}


def test_every_number_of_a_record_has_a_name() -> None:
    assert numbers(STEP) == {"loss/a": 0.5, "lr": 1e-5, "weight/a": 1.0}
    assert numbers(EVALUATION) == {"dev/a/accuracy": 0.5, "dev/a/n": 9, "dev loss/a": 0.7, "overall": 0.5}
    assert numbers(CONFLICTS) == {"conflict/a - b": -0.2}


def follow(tracker: Tracker, notes: list[str]) -> None:
    follower = Follower(tracker, notes.append)
    for record in (STEP, EVALUATION, CONFLICTS):
        follower(record)
    follower.close()


def test_tensorboard_files_hold_what_was_logged(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    notes: list[str] = []
    follow(TensorboardConfig().build(tmp_path, "run", {}), notes)
    assert notes == []
    events = accumulator.EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert {*events.Tags()["scalars"]} == {*numbers(STEP), *numbers(EVALUATION), *numbers(CONFLICTS)}
    (event,) = events.Scalars("dev/a/accuracy")
    assert (event.step, event.value) == (4, 0.5)


def test_mlflow_holds_what_was_logged_and_goes_on_with_the_same_run(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    tracking = pytest.importorskip("mlflow.tracking")
    notes: list[str] = []
    for _ in range(2):
        follow(MlflowConfig().build(tmp_path, "first", {"optimizer": {"lr": 1e-5}, "text": "x" * 900}), notes)
    assert notes == []
    client = tracking.MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'mlflow.db'}")
    (run,) = client.search_runs([client.get_experiment_by_name("weft").experiment_id])
    assert run.info.run_name == "first"
    assert run.info.status == "FINISHED"
    assert run.data.params["optimizer.lr"] == "1e-05"
    assert run.data.metrics == {**numbers(STEP), **numbers(EVALUATION), **numbers(CONFLICTS)}


def test_a_tracker_that_fails_is_left_behind() -> None:
    class Broken(Tracker):
        calls = 0

        def log(self, step: int, values: dict[str, float]) -> None:  # noqa: ARG002
            self.calls += 1
            raise ConnectionError("no server")

        def close(self) -> None:
            raise AssertionError("never reached")

    broken, notes = Broken(), []
    follow(broken, notes)
    assert broken.calls == 1
    assert len(notes) == 1
    assert "no server" in notes[0]
    assert "metrics.jsonl is complete" in notes[0]


@pytest.mark.parametrize(
    ("config", "module"), [(TensorboardConfig(), "torch.utils.tensorboard"), (MlflowConfig(), "mlflow.tracking")]
)
def test_a_missing_package_is_said_before_training(
    config: TensorboardConfig | MlflowConfig, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UserError, match=r'pip install "weft\[track\]"'):
        config.build(tmp_path, "run", {})
    assert json.dumps([str(path) for path in tmp_path.iterdir()]) == "[]"
