"""Benchmarks run, and their last line is what they promise."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.exported import write_model
from tests.integration.test_shipped_recipes import place  # noqa: F401  # a fixture
from tests.serving import TASKS

ROOT = Path(__file__).parents[2]


@pytest.mark.long
def test_predict_speed(tiny: Path, tmp_path: Path) -> None:
    model = write_model(
        tiny, tmp_path, {"sentiment": {"like": "sentiment", "pooling": "pooler"}, "similarity": {"like": "similarity"}}
    )
    command = [sys.executable, str(ROOT / "benchmarks" / "predict_speed.py"), "--model", str(model)]
    done = subprocess.run([*command, "--texts", "20", "--rounds", "3"], capture_output=True, text=True, check=True)
    report = json.loads(done.stdout.splitlines()[-1])
    for key in ("vs_pipeline", "vs_pipeline_repeated", "vs_encode", "onnx_int8_vs_onnx", "onnx_vs_torch"):
        low, high = report["spread"][key]
        assert 0 < low <= high
        assert report[key] > 0
        assert report["answers_apart"][key] < (0.1 if "int8" in key else 1e-5)
    assert report["texts"] == 20


@pytest.mark.long
@pytest.mark.parametrize(
    ("script", "keys"),
    [
        ("train_speed.py", {"vs_trainer_default", "vs_trainer_grouped", "vs_sentence_transformers", "share_of_matmul"}),
        (
            "methods_cost.py",
            {"pcgrad_vs_apart", "pcgrad_vs_joint", "smart_vs_plain", "distill_vs_plain", "ema_vs_plain"}
            | {"lora_vs_full", "lora_vs_passes"},
        ),
        ("distributed.py", {"two_vs_one"}),
        ("sources.py", {"epoch_vs_separate", "cpu_vs_separate", "tokens_vs_separate"}),
        ("frozen_speed.py", {"epoch_vs_off", "step_vs_off", "evaluation_vs_off"}),
    ],
)
def test_training_benchmarks(script: str, keys: set[str]) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / script), "--steps", "1", "--rounds", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    report = json.loads(done.stdout.splitlines()[-1])
    assert all(report[key] > 0 for key in keys)
    assert set(report["spread"]) == keys


@pytest.mark.long
def test_training_speed_of_a_shape() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "train_speed.py"), "--shape", "deberta-v3-small"]
    done = subprocess.run([*command, "--steps", "1", "--rounds", "1"], capture_output=True, text=True, check=True)
    report = json.loads(done.stdout.splitlines()[-1])
    assert set(report["spread"]) == {"vs_trainer_default", "vs_trainer_grouped", "share_of_matmul"}


@pytest.mark.long
def test_tasks_growth(tmp_path: Path) -> None:
    figure = tmp_path / "growth.svg"
    command = [sys.executable, str(ROOT / "benchmarks" / "tasks_growth.py"), "--tasks", "1,2,5", "--rows", "1"]
    options = ["--steps", "1", "--rounds", "1", "--figure", str(figure)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    report = json.loads(done.stdout.splitlines()[-1])
    assert set(report["spread"]) == {"per_task_plain", "per_task_pcgrad", "pcgrad_vs_plain", "drawn_vs_pcgrad"}
    assert {side: list(own) for side, own in report["seconds"].items()} == {
        "plain": ["1", "2", "5"],
        "pcgrad": ["2", "5"],
        "drawn": ["5"],
    }
    assert all(peak > 300 for own in report["peak_mib"].values() for peak in own.values())
    assert figure.read_text(encoding="utf-8").count("<svg") == 1


@pytest.mark.long
def test_scale() -> None:
    """Memory is compared at sizes where a Python object for each row would show."""
    command = [sys.executable, str(ROOT / "benchmarks" / "scale.py"), "--rows-small", "4000", "--rows-large", "60000"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    report = json.loads(done.stdout.splitlines()[-1])
    for work in ("train", "evaluate", "predict"):
        assert report[work]["anonymous_mb_small"] > 50
        assert report[work]["growth_mb"] < 40
        assert 0 < report[work]["time_per_row_ratio"] < 2


@pytest.mark.long
def test_serve_load(tiny: Path, tmp_path: Path) -> None:
    model = write_model(tiny, tmp_path, TASKS)
    command = [sys.executable, str(ROOT / "benchmarks" / "serve_load.py"), "--model", str(model)]
    options = ["--seconds", "2", "--rounds", "2", "--clients", "8", "--sides", "batching,single"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    report = json.loads(done.stdout.splitlines()[-1])
    assert set(report["spread"]) == {
        *("batching_vs_single", "batching_cpu", "batching_half_load", "batching_half_load_poisson")
    }
    assert all(report[key] > 0 for key in report["spread"])
    assert report["errors"] == 0
    for side in report["sides"].values():
        assert 0 < side["p50_ms"] <= side["p95_ms"] <= side["p99_ms"]
        assert side["requests"] > 8


@pytest.mark.long
def test_serve_abuse(tiny: Path, tmp_path: Path) -> None:
    """Times are for people: here, honest clients are answered, nothing fails, and memory comes back."""
    model = write_model(tiny, tmp_path, TASKS)
    command = [sys.executable, str(ROOT / "benchmarks" / "serve_abuse.py"), "--model", str(model)]
    options = ["--seconds", "15", "--clients", "8", "--abusers", "40", "--posts", "2"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["failures"] == 0
    assert set(report["flood"]["statuses"]) == {"200"}
    assert set(report["flood"]["abusers"]) <= {"200", "429", "closed"}
    assert report["flood"]["abusers"]["429"] > 0
    assert report["flood"]["rss_growth_mb"] < 100
    assert report["soak"]["statuses"]["200"] > 8
    assert {"400", "403", "413", "421"} <= {status for kind in report["soak"]["abusers"].values() for status in kind}
    assert all(milliseconds > 0 for milliseconds in report["stall_ms"].values())


@pytest.mark.long
def test_cold_start(tiny: Path, tmp_path: Path) -> None:
    model = write_model(tiny, tmp_path, {"sentiment": {"like": "sentiment"}})
    command = [sys.executable, str(ROOT / "benchmarks" / "cold_start.py"), "--model", str(model), "--rounds", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    report = json.loads(done.stdout.splitlines()[-1])
    assert set(report["spread"]) == {
        *("predict_vs_floor", "cpu_vs_floor", "load_vs_floor", "help_vs_typer", "help_cpu_vs_typer")
    }
    assert all(report[key] > 0 for key in report["spread"])


@pytest.mark.long
def test_champion(place: Path, tmp_path: Path) -> None:  # noqa: F811
    """Halves of the dev rows, two seeds, and a result that a second call only reads."""
    command = [sys.executable, str(ROOT / "benchmarks" / "champion.py"), "--data-dir", str(place / "data")]
    command += ["--out", str(tmp_path / "out"), "--body", str(place / "body"), "--seeds", "1", "2"]
    command += [
        "--set",
        "optimizer.precision=fp32",
        "--set",
        "max_length=32",
        "--save",
        str(tmp_path / "champion.json"),
    ]
    first = subprocess.run(command, capture_output=True, text=True, check=True)
    again = subprocess.run([*command, "--speed"], capture_output=True, text=True, check=True)
    one, two = (json.loads(done.stdout.splitlines()[-1])["body"] for done in (first, again))
    assert "$ weft train" in first.stdout
    assert "$ weft train" not in again.stdout
    assert two.pop("texts_per_second") > 0
    assert one == two
    assert one["rows"] == {"sentiment": 6, "paraphrase": 12, "similarity": 6}
    assert set(one["scores"]["overall"]["seeds"]) == {"1", "2"}
    assert json.loads((tmp_path / "champion.json").read_text(encoding="utf-8"))["body"]["layers"] == 12
