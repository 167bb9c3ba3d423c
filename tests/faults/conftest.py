"""A server that runs and kills `weft`, and what fault tests measure with it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest


class Done(NamedTuple):
    code: int
    stdout: str
    stderr: str


class Forks:
    """`weft` in forks of one process: a fraction of a second each instead of several."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def weft(self, *arguments: Any, **faults: Any) -> Done:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        request = {"arguments": [str(a) for a in arguments], "folder": str(self.folder), **faults}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        code = json.loads(self.process.stdout.readline())["code"]
        done = Done(code, (self.folder / "stdout").read_text(), (self.folder / "stderr").read_text(errors="replace"))
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    server = Forks(tmp_path_factory.mktemp("forks"))
    yield server
    server.close()
