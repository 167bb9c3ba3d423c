"""The example scripts of the documentation run as they stand."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "examples"
MODULES = ("focal.py",)
"""what the scripts import"""
EXAMPLES = sorted(path for path in FOLDER.glob("*.py") if path.name not in MODULES)


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


def test_the_loss_is_the_one_of_the_page() -> None:
    page = (FOLDER.parent / "extending.md").read_text(encoding="utf-8")
    assert f"```python\n# focal.py\n{(FOLDER / 'focal.py').read_text(encoding='utf-8')}```" in page
