"""Runs the real `weft` command in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

WEFT = [sys.executable, "-m", "weft"]


def weft(*arguments: Any, code: int = 0, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run to the end and check the exit code; no command ever shows a traceback."""
    done = subprocess.run(
        [*WEFT, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=300, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def start(*arguments: Any) -> subprocess.Popen[str]:
    """Start and return at once."""
    return subprocess.Popen(
        [*WEFT, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )
