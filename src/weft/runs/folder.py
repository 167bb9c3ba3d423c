"""The folder of one run: who may write into it, and its log."""

import fcntl
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from weft.foundation.atomic import open_in_place, require_no_links, sync, write_whole
from weft.foundation.errors import UserError


class RunFolder:
    """Held by one process at a time. The kernel drops the lock of a dead process, so it never blocks anybody."""

    def __init__(self, path: Path, *, resume: bool) -> None:
        self.path = path
        if path.exists() and not path.is_dir():
            raise UserError(f"{path}: is a file; -o names the folder of the run")
        if path.is_dir() and any(path.iterdir()) and not resume:
            raise UserError(f"{path}: already exists; go on with --resume, or choose another folder with -o")
        try:
            path.mkdir(parents=True, exist_ok=True)
            require_no_links(path)
            self._lock = open_in_place(path / ".lock", "w")
        except OSError as error:
            raise UserError(f"{path}: cannot be written ({error.strerror})") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(f"{path}: another process is training into this folder; wait for it") from None
        self.metrics = path / "metrics.jsonl"
        self.checkpoints = path / "checkpoints"
        self.model = path / "model"
        self.followers: list[Callable[[dict[str, Any]], None]] = []
        """who else gets every record of the log"""
        self.recover()

    def close(self) -> None:
        self._lock.close()

    def cut_metrics(self, size: int) -> None:
        """Forget what was logged after the checkpoint that a run goes on from."""
        found = self.metrics.stat().st_size if self.metrics.exists() else 0
        if found < size:
            raise UserError(
                f"{self.metrics}: has {found} bytes, but the checkpoint knows of {size}; the log is damaged, "
                "so the run cannot go on exactly: restore it, or start in another folder with -o"
            )
        with open_in_place(self.metrics, "a") as handle:
            handle.truncate(size)

    def log(self, record: dict[str, Any]) -> None:
        with open_in_place(self.metrics, "a") as handle:
            handle.write(json.dumps(without_nan(record), allow_nan=False) + "\n")
        for follow in self.followers:
            follow(record)

    def metrics_size(self) -> int:
        """Bytes in the log, all of them on the disk."""
        if not self.metrics.exists():
            return 0
        sync(self.metrics)
        return self.metrics.stat().st_size

    def write_text(self, name: str, text: str) -> None:
        write_whole(self.path / name, text)

    def write_json(self, name: str, content: Any) -> None:
        write_whole(self.path / name, json.dumps(without_nan(content), indent=2, allow_nan=False) + "\n")

    def replace_folder(self, name: str, write: Callable[[Path], None]) -> None:
        """Write a folder under another name and swap it in; `recover` mends a swap that was cut off."""
        temporary, target, old = (self.path / n for n in (f".{name}.tmp", name, f".{name}.old"))
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        try:
            write(temporary)
            for path in temporary.iterdir():
                sync(path)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        if target.exists():
            shutil.rmtree(old, ignore_errors=True)
            target.rename(old)
        temporary.rename(target)
        sync(self.path)
        shutil.rmtree(old, ignore_errors=True)

    def recover(self) -> None:
        """Put back or clear away what a killed process left between two renames."""
        for name in ("model", "predictions"):
            old = self.path / f".{name}.old"
            if old.exists() and not (self.path / name).exists():
                old.rename(self.path / name)
            for left_over in (old, self.path / f".{name}.tmp"):
                shutil.rmtree(left_over, ignore_errors=True)
        for half in self.path.glob(".*.tmp"):
            half.unlink()


class Bystander(RunFolder):
    """The run folder as a process sees it that does not lead: it reads checkpoints and writes nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"
        self.followers = []

    def close(self) -> None: ...
    def cut_metrics(self, size: int) -> None: ...
    def log(self, record: dict[str, Any]) -> None: ...
    def write_text(self, name: str, text: str) -> None: ...
    def write_json(self, name: str, content: Any) -> None: ...


def without_nan(value: Any) -> Any:
    """An undefined score is null in JSON, which has no NaN."""
    if isinstance(value, dict):
        return {key: without_nan(inner) for key, inner in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
