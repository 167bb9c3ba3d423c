"""The folder of one run: its paths, its lock and its log."""

import fcntl
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from weft.foundation.atomic import open_in_place, require_no_links, sync, write_whole
from weft.foundation.config import file_name
from weft.foundation.content import Content
from weft.foundation.errors import UserError
from weft.foundation.records import JsonRecord, to_json
from weft.runs.records import LogRecord


@dataclass(frozen=True)
class RunPaths:
    """Paths of all files in a run folder. No other module spells out these names."""

    folder: Path

    @property
    def recipe(self) -> Path:
        """the recipe, resolved"""
        return self.folder / "recipe.toml"

    @property
    def environment(self) -> Path:
        return self.folder / "environment.json"

    @property
    def metrics(self) -> Path:
        """the log: a line for each step, evaluation and conflict measurement"""
        return self.folder / "metrics.jsonl"

    @property
    def predictions(self) -> Path:
        """folder with the best model's predictions for the dev rows"""
        return self.folder / "predictions"

    def answers(self, task: str) -> Path:
        """Predictions file of a task."""
        return answers_in(self.predictions, task)

    @property
    def result(self) -> Path:
        """exists once the run has ended"""
        return self.folder / "result.json"

    @property
    def report(self) -> Path:
        return self.folder / "report.html"

    @property
    def model(self) -> Path:
        """folder of the best model"""
        return self.folder / "model"

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def pruned(self) -> Path:
        """record of what `weft prune` deleted"""
        return self.folder / "pruned.json"

    @property
    def reused(self) -> Path:
        """record of the run that this one is a copy of"""
        return self.folder / "reused.json"

    @property
    def bias(self) -> Path:
        """result of `weft probe`"""
        return self.folder / "bias.json"

    @property
    def is_run(self) -> bool:
        return self.recipe.is_file()

    @property
    def has_ended(self) -> bool:
        return self.result.is_file()


class RunFolder:
    """A run folder, locked by one process at a time. The kernel releases the lock when the process dies."""

    def __init__(self, path: Path, *, resume: bool) -> None:
        self.paths = RunPaths(path)
        if path.exists() and not path.is_dir():
            raise UserError(f"{path}: is a file; -o names the folder of the run")
        if path.is_dir() and any(path.iterdir()) and not resume:
            raise UserError(f"{path}: already exists; continue with --resume, or choose another folder with -o")
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
        self.followers: list[Callable[[Content], None]] = []
        """callables that get every record of the log, as plain values"""
        self.recover()

    def close(self) -> None:
        self._lock.close()

    def cut_metrics(self, size: int) -> None:
        """Truncate the log to its size at the checkpoint that a run resumes from."""
        found = self.paths.metrics.stat().st_size if self.paths.metrics.exists() else 0
        if found < size:
            raise UserError(
                f"{self.paths.metrics}: has {found} bytes, but the checkpoint records {size}; the log is damaged, "
                "so the run cannot resume exactly: restore the log, or start in another folder with -o"
            )
        with open_in_place(self.paths.metrics, "a") as handle:
            handle.truncate(size)

    def log(self, record: LogRecord) -> None:
        """Append a record to the log and pass it to the followers."""
        with open_in_place(self.paths.metrics, "a") as handle:
            handle.write(to_json(record) + "\n")
        for follow in self.followers:
            follow(record.plain())

    def metrics_size(self) -> int:
        """Flush the log to disk and return its size in bytes."""
        if not self.paths.metrics.exists():
            return 0
        sync(self.paths.metrics)
        return self.paths.metrics.stat().st_size

    def write_text(self, path: Path, text: str) -> None:
        write_whole(path, text)

    def write_json(self, path: Path, record: JsonRecord) -> None:
        write_whole(path, to_json(record, indent=2) + "\n")

    def replace_folder(self, target: Path, write: Callable[[Path], None]) -> None:
        """Write a folder under a temporary name and swap it in; `recover` repairs an interrupted swap."""
        temporary, old = _beside(target)
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
        sync(self.paths.folder)
        shutil.rmtree(old, ignore_errors=True)

    def recover(self) -> None:
        """Restore or delete what a killed process left between two renames."""
        for target in (self.paths.model, self.paths.predictions):
            temporary, old = _beside(target)
            if old.exists() and not target.exists():
                old.rename(target)
            for left_over in (old, temporary):
                shutil.rmtree(left_over, ignore_errors=True)
        for half in self.paths.folder.glob(".*.tmp"):
            half.unlink()


class Bystander(RunFolder):
    """The run folder on ranks other than 0: it reads checkpoints and writes nothing."""

    def __init__(self, path: Path) -> None:
        self.paths = RunPaths(path)
        self.followers = []

    def close(self) -> None: ...
    def cut_metrics(self, size: int) -> None: ...
    def log(self, record: LogRecord) -> None: ...
    def write_text(self, path: Path, text: str) -> None: ...
    def write_json(self, path: Path, record: JsonRecord) -> None: ...


def answers_in(predictions: Path, task: str) -> Path:
    """Path of one task's file in a folder of predictions."""
    return predictions / f"{file_name(task)}.parquet"


def _beside(target: Path) -> tuple[Path, Path]:
    """Temporary names for a folder while it is written, and for the folder that it replaces."""
    return target.with_name(f".{target.name}.tmp"), target.with_name(f".{target.name}.old")
