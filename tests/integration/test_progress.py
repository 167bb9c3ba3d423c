"""What `weft.train` shows: a bar where somebody looks, nothing in a log."""

import os
import pty
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.tiny import recipe_content, write_recipe
from weft.report.live import SafeConsole, Watcher
from weft.training.checkpoint import Progress
from weft.training.step import StepReport

SCRIPT = """
import sys, weft
weft.train(sys.argv[1], sys.argv[2], steps=2, device="cpu", progress=sys.argv[3] == "yes")
"""


def arguments(tiny: Path, tmp_path: Path, progress: str) -> list[str]:
    recipe = write_recipe(tmp_path, recipe_content(tiny))
    return [sys.executable, "-c", SCRIPT, str(recipe), str(tmp_path / "run"), progress]


def seen_in_a_terminal(command: list[str]) -> str:
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, env=environment)
    os.close(theirs)
    seen = b""
    try:
        while part := os.read(ours, 65536):
            seen += part
    except OSError:  # Linux says so when the other end is closed
        pass
    assert process.wait() == 0, process.stderr.read() if process.stderr else ""
    return seen.decode()


def test_a_terminal_shows_a_bar_and_the_scores(tiny: Path, tmp_path: Path) -> None:
    seen = seen_in_a_terminal(arguments(tiny, tmp_path, "yes"))
    assert "training" in seen
    assert "100%" in seen
    assert "after 2 steps" in seen


def test_progress_can_be_turned_off(tiny: Path, tmp_path: Path) -> None:
    assert seen_in_a_terminal(arguments(tiny, tmp_path, "no")) == ""


def test_a_log_stays_empty(tiny: Path, tmp_path: Path) -> None:
    command = arguments(tiny, tmp_path, "yes")
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"FORCE_COLOR": "1"}, check=True)
    assert (done.stdout, done.stderr) == ("", "")


class Shown:
    """What a notebook's page holds: every display and its updates."""

    def __init__(self) -> None:
        self.pages: list[str] = []

    def display(self, page: Any, *, display_id: bool = False) -> "Shown":
        assert display_id
        self.pages.append(str(page))
        return self

    def update(self, page: Any) -> None:
        self.pages[-1] = str(page)


def test_a_notebook_updates_one_element(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the calls of `IPython.display` alone, whose place a module of that name takes here."""
    shown = Shown()
    module = types.ModuleType("IPython.display")
    vars(module).update(HTML=str, display=shown.display)
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    console = SafeConsole()
    console.is_jupyter = True
    watcher = Watcher(console)
    watcher.started(Progress(), steps=2)
    for step in (1, 2):
        watcher.stepped(step, StepReport({"<b>mood": 0.5}, {}, 10, 1.0, {}), 0.1)
    watcher.close()
    assert len(shown.pages) == 1
    assert '<progress value="2" max="2">' in shown.pages[0]
    assert "step 2 of 2  &lt;b&gt;mood 0.500" in shown.pages[0]


class Interrupting:
    """A listener that presses Ctrl-C."""

    def started(self, progress: Any, steps: int) -> None: ...
    def evaluated(self, evaluation: Any, is_best: bool) -> None: ...
    def noted(self, message: str) -> None: ...

    def stepped(self, step: int, report: Any, seconds: float) -> None:  # noqa: ARG002
        os.kill(os.getpid(), 2)


def test_an_interrupted_run_says_how_to_go_on(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(weft.Interrupted, match="call weft.train again with resume=True"):
        weft.train(recipe_content(tiny), tmp_path / "run", device="cpu", listener=Interrupting())
    model = weft.train(recipe_content(tiny), tmp_path / "run", device="cpu", resume=True)
    assert "sentiment" in model.tasks
