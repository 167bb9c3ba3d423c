"""`weft` in forks of one process that has everything imported: a fraction of a second each instead of several."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

FEW_RESAMPLES = 20
"""rounds of a bootstrap in tests of other things than intervals"""


class Done(NamedTuple):
    code: int
    stdout: str
    stderr: str


class Forks:
    """The process, and whatever it is asked to run; faults are described in `forks_server.py`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.forks_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
        )

    def weft(self, *arguments: Any, cwd: Path | None = None, **faults: Any) -> Done:
        """Run to the end; no command ever shows a traceback."""
        done = self._run(cwd, arguments=[str(a) for a in arguments], **faults)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def python(self, code: str, cwd: Path) -> Done:
        """Run a script to the end, as `python -c` does."""
        return self._run(cwd, arguments=[], code=code)

    def _run(self, cwd: Path | None, **asked: Any) -> Done:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        request = {
            "folder": str(self.folder),
            "cwd": str(cwd or Path.cwd()),
            "environment": dict(os.environ),
            "resamples": FEW_RESAMPLES,
            **asked,
        }
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        code = json.loads(self.process.stdout.readline())["code"]
        return Done(code, (self.folder / "stdout").read_text(), (self.folder / "stderr").read_text(errors="replace"))

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
