"""A kind of label is added as CONTRIBUTING.md says: its snippets go into a copy of weft, which trains such a task."""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import weft
from tests.integration.test_docs import ROOT
from tests.tiny import recipe_content, write_recipe, write_rows

SECTION = re.compile(r"^## Add a kind of label\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
STEP = re.compile(r"^\d+\. \*\*`src/(weft/\S+)`\*\*", re.MULTILINE)
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)


def snippets() -> dict[str, str]:
    """File -> content, for each step of the walk-through that shows a file."""
    section = SECTION.search((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert section is not None
    _, *steps = STEP.split(section[1])
    found = {path: CODE.search(step) for path, step in zip(steps[::2], steps[1::2], strict=True)}
    return {path: textwrap.dedent(code[1]) for path, code in found.items() if code is not None}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of weft with the new kind in it."""
    folder = tmp_path_factory.mktemp("package")
    shutil.copytree(Path(weft.__file__).parent, folder / "weft", ignore=shutil.ignore_patterns("__pycache__"))
    files = snippets()
    assert list(files) == ["weft/kinds/grade.py", "weft/report/sections/grade.py"]
    for path, code in files.items():
        (folder / path).write_text(code, encoding="utf-8")
    registry = folder / "weft" / "kinds" / "__init__.py"
    text = registry.read_text(encoding="utf-8")
    text = text.replace("        Regression(),\n", "        Regression(),\n        Grade(),\n")
    text = text.replace("from weft.kinds.multi", "from weft.kinds.grade import Grade\nfrom weft.kinds.multi")
    registry.write_text(text, encoding="utf-8")
    return folder


SCRIPT = """
import json
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console

import weft
from weft.evaluation import bootstrap
from weft.foundation.errors import UserError
from weft.report.text import print_report
from weft.runs.reader import read_run

bootstrap.ROUNDS = 20
recipe, wrong, run = map(Path, sys.argv[1:])
weft.train(recipe, run)
model = weft.load(run)
console = Console(file=StringIO(), width=100)
print_report([read_run(run)], console)
try:
    weft.train(wrong, run.with_name("wrong"))
except UserError as error:
    refused = str(error)
print(json.dumps({
    "file": weft.__file__,
    "scores": model.evaluate().scores["mark"],
    "answer": model.predict("mark", "a good film").as_dict(),
    "text": console.file.getvalue(),
    "refused": refused,
}))
"""


def test_a_new_kind_trains_answers_and_reports(package: Path, tiny: Path, tmp_path: Path) -> None:
    texts = {"A": "a wonderful film", "b": "a good film", "F": "a dull film"}
    marks = list(texts) * 10

    def recipe(name: str, marks: list[str]) -> Path:
        rows = [{"text": f"{texts.get(mark, 'a film')} {i}", "mark": mark} for i, mark in enumerate(marks)]
        data = {"train": str(write_rows(tmp_path / f"{name}.tsv", rows)), "dev_fraction": 0.3, "label": "mark"}
        tasks = {"mark": {"kind": "grade", "data": data}}
        return write_recipe(tmp_path, recipe_content(tiny, epochs=2, tasks=tasks), f"{name}.toml")

    folder = tmp_path / "run"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, recipe("right", marks), recipe("wrong", [*marks, "E"]), folder],
        env=os.environ | {"PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert Path(found["file"]).is_relative_to(package)
    assert list(found["scores"]) == ["kappa", "accuracy", "class-distance", "n"]
    assert list(found["answer"]["probabilities"]) == ["F", "D", "C", "B", "A"]
    assert "has the label 'E', expected one of F, D, C, B, A" in found["refused"]
    assert "5 A" in found["text"]
    assert json.loads((folder / "model" / "weft.json").read_text())["labels"]["mark"]["kind"] == "grade"
    assert set(pq.read_table(folder / "predictions" / "mark.parquet").column("label").to_pylist()) == {"A", "B", "F"}
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "grade, single reading" in page
    assert "ROC of every cut between grades" in page
