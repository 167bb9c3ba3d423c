"""Two processes train what one trains, end together, and go on in any number."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from safetensors.torch import load_file

from tests.exported import write_model
from tests.integration.test_resume import wait_for_steps
from tests.integration.together import free_port, start_together, train_together
from tests.sourced import table_content, write_table
from tests.tagged import recipe as tagged_recipe
from tests.tagged import rows
from tests.tiny import matches_task, recipe_content, write_recipe
from weft.api import Quiet
from weft.recipes.recipe import load_recipe, parse_recipe
from weft.run import train_run

pytestmark = pytest.mark.usefixtures("few_resamples")
SMART = {"name": "smart", "weight": 0.5}


def exact(tiny: Path, **changes: Any) -> dict[str, Any]:
    """float64 without dropout: nothing but the order of sums may differ. Batches of 1, 8 and 5 rows; sets end oddly."""
    optimizer = {"lr": 1e-3, "weight_decay": 0.01, "clip": 1.0, "precision": "fp64", **changes.pop("optimizer", {})}
    content = recipe_content(tiny, epochs=1, dropout=0.0, body_dropout=0.0, optimizer=optimizer, **changes)
    content["tasks"]["sentiment"]["batch_size"] = 1
    return content


def teacher(tiny: Path) -> Path:
    """A model of all three tasks."""
    folder = tiny.parent / "teacher"
    if not folder.exists():
        folder.mkdir()
        likes = {name: {"like": name} for name in ("sentiment", "paraphrase", "similarity")}
        write_model(tiny, folder, likes, body=str(tiny / "body"))
    return folder / "model"


def cases(tiny: Path) -> dict[str, dict[str, Any]]:
    # The keys' biases have no true gradient. Bregman feeds what rounding moved them by back to AdamW, which makes large
    # steps of it unless eps is larger.
    smart = exact(tiny, penalties=["l1", "bregman", "bregman-weights"], optimizer={"eps": 1e-4})
    smart["tasks"]["paraphrase"]["regularizer"] = SMART
    gathered = exact(tiny, optimizer={"accumulate": 2})
    gathered["tasks"] |= {
        "match": matches_task(tiny, loss={"name": "in-batch-negatives", "gather": True, "symmetric": True}),
        "similarity": gathered["tasks"]["similarity"] | {"head": "cosine", "loss": {"name": "cosent", "gather": True}},
    }
    apart = exact(tiny, surgery="pcgrad")
    apart["tasks"]["match"] = gathered["tasks"]["match"]
    windows = exact(tiny, surgery="pcgrad", max_length=8)  # some batches of a process have no long text
    windows["tasks"]["sentiment"] |= {"long_texts": {"name": "windows", "pool": "attention"}, "regularizer": SMART}
    return {
        "gathered": gathered,
        "gathered apart": apart,
        "windows": windows,
        "sum": exact(tiny, schedule="max-size-cycle"),
        "uncertainty": exact(tiny, weighting={"name": "uncertainty", "lr": 0.01}, optimizer={"accumulate": 2}),
        "pcgrad": exact(tiny, surgery="pcgrad", log={"conflicts_every": 2}),
        "logged": exact(
            tiny, weighting={"name": "dwa", "every": 1}, log={"conflicts_every": 3, "conflicts_by_layer": True}
        ),
        "one task at a time": exact(tiny, schedule="epoch-round-robin", trainable={"name": "layers", "layers": [1]}),
        "smart and penalties": smart,
        "distilled average": exact(tiny, distill={"teachers": [str(teacher(tiny))], "anneal": True}, average="ema"),
        "one source": shared_rows(tiny),
        "one source, pcgrad": shared_rows(tiny, surgery="pcgrad"),
        "frozen": exact(tiny, trainable="frozen") | {"epochs": 3},
        "frozen layers": exact(tiny, trainable={"name": "layers", "layers": [1]}, surgery="pcgrad") | {"epochs": 3},
        "tags": tagged(tiny),
        "tags, crf, pcgrad": tagged(tiny, surgery="pcgrad", loss="crf"),
        "dropout": recipe_content(tiny, epochs=1),
        "dropout again": recipe_content(tiny, epochs=1),
    }


def shared_rows(tiny: Path, **changes: Any) -> dict[str, Any]:
    """Four tasks on one table with blank labels; tokens are logged, so both runs encode each row once."""
    table = write_table(tiny / "table.tsv", rows=27, blank=0.6)
    return table_content(tiny, table, epochs=1, dropout=0.0, body_dropout=0.0, **changes)


def tagged(tiny: Path, surgery: str = "none", **task: Any) -> dict[str, Any]:
    """Rows have 6 or 7 words, so the two processes have different numbers of words."""
    for split, own in (("train", rows(27, 0)), ("dev", rows(6, 1))):
        (tiny / f"{split}.jsonl").write_text("\n".join(map(json.dumps, own)) + "\n", encoding="utf-8")
    optimizer = {"lr": 1e-3, "precision": "fp64", "accumulate": 2}
    content = tagged_recipe(tiny, "jsonl", "tokens", "slots", **task)
    return content | {"surgery": surgery, "optimizer": optimizer, "dropout": 0.0, "body_dropout": 0.0}


def records(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def assert_equal_runs(one: Path, two: Path) -> None:
    (last,) = {sorted(run.glob("checkpoints/step-*"))[-1].name for run in (one, two)}
    for file in ("weights.safetensors", "optimizer.safetensors"):
        weights, others = (load_file(run / "checkpoints" / last / file) for run in (one, two))
        assert weights.keys() == others.keys()
        for name, tensor in weights.items():
            torch.testing.assert_close(tensor, others[name], rtol=0, atol=1e-9, msg=lambda m, n=name: f"{n}: {m}")
    for ours, theirs in zip(records(one), records(two), strict=True):
        assert_close({**ours, "seconds": 0}, {**theirs, "seconds": 0})


def assert_close(one: Any, two: Any) -> None:
    if isinstance(one, dict):
        assert one.keys() == two.keys()
        for key in one:
            assert_close(one[key], two[key])
    else:
        assert one == (pytest.approx(two, abs=1e-9) if isinstance(one, float) else two)


@pytest.fixture(scope="module")
def together(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All cases, trained by two processes."""
    folder = tmp_path_factory.mktemp("together")
    train_together(folder, cases(tiny))
    return folder


@pytest.mark.parametrize(
    "name",
    [
        "windows",
        "sum",
        "gathered",
        "gathered apart",
        "uncertainty",
        "pcgrad",
        "logged",
        "one task at a time",
        "smart and penalties",
        "distilled average",
        "one source",
        "one source, pcgrad",
        "frozen",
        "frozen layers",
        "tags",
        "tags, crf, pcgrad",
    ],
)
def test_two_processes_equal_one(
    name: str, tiny: Path, together: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "randn_like", torch.ones_like)
    train_run(parse_recipe(cases(tiny)[name], name), tmp_path / "one", Quiet(), device="cpu")
    assert_equal_runs(tmp_path / "one", together / name)
    assert len([r for r in records(tmp_path / "one") if r["event"] == "step"]) >= 3


def test_draws_are_repeated_exactly_and_differ_between_processes(tiny: Path, together: Path, tmp_path: Path) -> None:
    one, two = (load_file(together / name / "model" / "model.safetensors") for name in ("dropout", "dropout again"))
    assert all(torch.equal(one[name], two[name]) for name in one)
    train_run(parse_recipe(recipe_content(tiny, epochs=1), "alone"), tmp_path / "alone", Quiet(), device="cpu")
    logs = [records(run) for run in (tmp_path / "alone", together / "dropout")]
    steps = [[record for record in log if record["event"] == "step"] for log in logs]
    assert [step["rows"] for step in steps[0]] == [step["rows"] for step in steps[1]]
    assert steps[0][0]["losses"] != steps[1][0]["losses"]


def torchrun(*arguments: Any) -> list[str]:
    master = ["--master-addr", "127.0.0.1", "--master-port", str(free_port())]
    return ["-m", "torch.distributed.run", "--nproc-per-node", "2", *master, "-m", "weft", *map(str, arguments)]


def workers(parent: int) -> dict[int, psutil.Process]:
    """rank -> process"""
    return {int(child.environ()["RANK"]): child for child in psutil.Process(parent).children(recursive=True)}


def test_a_lost_process_ends_the_others_and_one_goes_on_alone(tiny: Path, tmp_path: Path) -> None:
    file = write_recipe(tmp_path, exact(tiny) | {"epochs": 30, "checkpoint": {"every_steps": 10}})
    out = tmp_path / "run"
    process = subprocess.Popen(
        [sys.executable, *torchrun("train", file, "-o", out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_for_steps(out, 25)
    workers(process.pid)[1].send_signal(signal.SIGKILL)
    said, errors = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "process 0 of 2: another process of this run has exited" in errors
    assert "continue with --resume, with any number of processes" in errors
    assert said.count("after 0 steps") == 1, "the first process alone speaks"
    environment = json.loads((out / "environment.json").read_text())
    assert environment["processes"] == 2
    recipe = load_recipe(file)
    train_run(recipe, out, Quiet(), device="cpu", resume=True)
    train_run(recipe, tmp_path / "straight", Quiet(), device="cpu")
    assert_equal_runs(tmp_path / "straight", out)


@pytest.mark.long
def test_what_is_refused_is_told_once_and_without_torchrun_too(tiny: Path, tmp_path: Path) -> None:
    file = write_recipe(tmp_path, exact(tiny))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "something").touch()
    first, second = start_together(["-m", "weft", "train", str(file), "-o", str(tmp_path / "run")], 2)
    _, errors = first.communicate(timeout=300)
    _, others = second.communicate(timeout=300)
    assert first.returncode == 2
    assert "already exists" in errors
    assert second.returncode == 1
    assert "already exists" not in others
    assert "Traceback" not in errors + others


SEVERAL = """
import os, sys, time
import weft
from weft.evaluation import bootstrap
bootstrap.ROUNDS = 20
rank = os.environ["RANK"]
for number in range(3):
    time.sleep(0.7 * (rank == "1"))
    weft.train(sys.argv[1], f"{sys.argv[2]}/{number}", steps=1, device="cpu")
"""


@pytest.mark.long
def test_a_script_may_train_several_runs(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "several.py").write_text(SEVERAL, encoding="utf-8")
    file = write_recipe(tmp_path, exact(tiny))
    *start, _, _ = torchrun()
    done = subprocess.run(
        [sys.executable, *start, str(tmp_path / "several.py"), str(file), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    weights = [load_file(tmp_path / str(number) / "model" / "model.safetensors") for number in range(3)]
    assert all(torch.equal(weights[0][name], own[name]) for own in weights[1:] for name in own)


RESUME = """
import os, sys
from weft.run import train_run
from weft.__main__ import main
sys.argv = ["weft", "train", sys.argv[1], "-o", sys.argv[2] + os.environ["RANK"], "--device", "cpu", "--resume"]
main()
"""


@pytest.mark.long
def test_processes_that_find_different_checkpoints_are_refused(tiny: Path, tmp_path: Path) -> None:
    class Stop(Quiet):
        def stepped(self, step: int, report: Any, seconds: float) -> None:  # noqa: ARG002
            if step == 5:
                raise KeyboardInterrupt

    file = write_recipe(tmp_path, exact(tiny))
    with pytest.raises(KeyboardInterrupt):
        train_run(load_recipe(file), tmp_path / "run0", Stop(), device="cpu")
    shutil.copytree(tmp_path / "run0", tmp_path / "run1")
    assert [path.name for path in sorted(tmp_path.glob("run1/checkpoints/step-*"))] == ["step-000002", "step-000004"]
    shutil.rmtree(tmp_path / "run1" / "checkpoints" / "step-000004")
    (tmp_path / "resume.py").write_text(RESUME, encoding="utf-8")
    first, second = start_together([str(tmp_path / "resume.py"), str(file), str(tmp_path / "run")], 2)
    _, errors = first.communicate(timeout=300)
    _, others = second.communicate(timeout=300)
    assert "found different checkpoints (steps 4, 2, by process)" in errors
    assert first.returncode == second.returncode == 1
    assert "Traceback" not in errors + others
