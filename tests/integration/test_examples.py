"""The example scripts of the documentation run as they stand."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "docs" / "examples").glob("*.py"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.name)
def test_an_example_runs(script: Path, tiny: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(script), str(tiny / "body")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=dict(os.environ),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", "no warnings"
    assert "Prediction(verdict: '" in done.stdout
    assert "input_verdict" in done.stdout
    assert (tmp_path / "runs" / "reviews" / "report.html").is_file()


def test_there_is_one() -> None:
    assert "notebook.py" in [script.name for script in EXAMPLES]
