"""What is imported when: answering for a text needs no training code, and `--help` not even torch."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.exported import write_model

TRAINING = {
    *("training", "report", "study", "sweep", "trackers", "schedules", "weighting", "surgery", "penalties", "recipes"),
    *("build", "run", "export", "serving"),
}
LIBRARIES = {
    *("sklearn", "scipy", "matplotlib", "pandas", "polars", "datasets", "jinja2", "torchjd", "transformers"),
    *("onnx", "onnxruntime", "fastapi", "uvicorn", "prometheus_client", "ray", "optuna", "cleanlab"),
}
ARROW = "pyarrow.compute"  # as long as all of pydantic
COMPILER = "torch._dynamo"
"""takes seconds to import; torch does that by itself when a tensor without memory is drawn at random"""

LISTED = "import json, sys; print('\\n' + json.dumps(sorted(sys.modules)))"
LOAD = f"import sys, weft; print(weft.load(sys.argv[1], 'cpu').predict('mood', 'a cat').label); {LISTED}"
COMMAND = f"""
import sys
from weft.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
{LISTED}
"""


def imported(script: str, *arguments: Any) -> set[str]:
    """All modules of a process at its end."""
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def rooms(modules: set[str]) -> set[str]:
    return {name.split(".")[1] for name in modules if name.startswith("weft.")}


@pytest.fixture(scope="module")
def model(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tiny, tmp_path_factory.mktemp("light"), {"mood": {"like": "sentiment"}})


def test_a_model_loads_without_training_code(model: Path) -> None:
    found = imported(LOAD, model)
    assert "inference" in rooms(found)
    assert rooms(found) & (TRAINING | {"api", "cli"}) == set()
    assert found & (LIBRARIES | {"typer", "rich", COMPILER, ARROW}) == set()


def test_predict_of_one_text_imports_no_more(model: Path) -> None:
    found = imported(COMMAND, "predict", model, "mood", "a cat")
    assert "typer" in found
    assert rooms(found) & (TRAINING | {"api"}) == set()
    assert found & (LIBRARIES | {"rich", COMPILER, ARROW}) == set()


def test_help_imports_no_torch() -> None:
    found = imported(COMMAND, "--help")
    assert rooms(found) <= {"cli", "foundation", "data", "inference"}
    assert found & {"torch", "numpy", "pyarrow", "pydantic", "tokenizers", *LIBRARIES} == set()


def test_a_supervisor_imports_neither_model_nor_http_server() -> None:
    """The parent of `weft serve --workers` stays small: its workers load the model."""
    found = imported(f"import weft.cli.serve, weft.serving.supervisor, weft.serving.listening; {LISTED}")
    assert rooms(found) <= {"cli", "foundation", "data", "inference", "serving"}
    assert found & {"torch", "numpy", "pyarrow", "tokenizers", "fastapi", "uvicorn", *LIBRARIES} == set()


def test_scores_import_their_libraries_when_they_are_computed(model: Path, tiny: Path) -> None:
    """The test above can fail: evaluation does need scikit-learn."""
    rows = tiny / "data" / "sentiment-dev.tsv"
    script = f"import sys, weft; weft.load(sys.argv[1], 'cpu').evaluate(files={{'mood': sys.argv[2]}}); {LISTED}"
    assert "sklearn" in imported(script, model, rows)
