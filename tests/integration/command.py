"""Runs the real `weft` command: to its end in a fork of one process for all tests, or in a process of its own."""

import atexit
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from tests.forks import Done, Forks

WEFT = [sys.executable, "-m", "weft"]


@cache
def _forks() -> Forks:
    folder = tempfile.TemporaryDirectory()
    server = Forks(Path(folder.name))
    atexit.register(folder.cleanup)
    atexit.register(server.close)
    return server


def weft(*arguments: Any, code: int = 0, cwd: Path | None = None, **faults: Any) -> Done:
    """Run to the end and check the exit code."""
    done = _forks().weft(*arguments, cwd=cwd, **faults)
    assert done.code == code, f"exit {done.code}\n{done.stdout}\n{done.stderr}"
    return done


def python(code: str, cwd: Path) -> Done:
    """Run a script to its end."""
    return _forks().python(code, cwd)


def start(*arguments: Any) -> subprocess.Popen[str]:
    """Start and return at once."""
    return subprocess.Popen(
        [*WEFT, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )
