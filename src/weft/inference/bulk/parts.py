"""The work folder beside an output, OUTPUT.parts: finished shards, and what they are shards of.

A part is written under another name, synced and renamed, so whatever bears a part's name is sound. The folder is
held by one process at a time; the kernel drops the lock of a dead one.
"""

import fcntl
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from weft.foundation.atomic import open_in_place, replacing, require_no_links, sync
from weft.foundation.errors import UserError

MANIFEST = "manifest.json"


def parts_folder(output: Path) -> Path:
    return output.with_name(f"{output.name}.parts")


def read_manifest(output: Path) -> dict[str, Any]:
    """What the shards beside an output belong to; empty if there are none."""
    folder = parts_folder(output)
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


class Parts:
    """Opened for one piece of work; shards of any other are cleared away."""

    def __init__(self, output: Path, manifest: dict[str, Any]) -> None:
        self.output = output
        self.folder = parts_folder(output)
        self._require_ours()
        try:
            self.folder.mkdir(exist_ok=True)
            require_no_links(self.folder)
            self._lock = open_in_place(self.folder / ".lock", "w")
        except OSError as error:
            raise UserError(f"{self.folder}: cannot be written ({error.strerror})") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(f"{output}: another process is writing this output; wait for it") from None
        for half in self.folder.glob(".*.tmp"):  # of a process that was killed
            half.unlink()
        if read_manifest(output) != manifest:
            self._clear()
            try:
                self._write(self.folder / MANIFEST, json.dumps(manifest, indent=2).encode())
            except OSError:
                self._remove()
                raise

    def _require_ours(self) -> None:
        """Nobody's own files are taken for shards."""
        if self.folder.is_symlink():
            raise UserError(f"{self.folder}: is a symbolic link; shards need a folder of their own: remove it")
        if self.folder.is_dir() and not (self.folder / MANIFEST).exists():
            foreign = [path.name for path in self.folder.iterdir() if not path.name.startswith(".")]
        else:
            foreign = [self.folder.name] if self.folder.exists() and not self.folder.is_dir() else []
        if foreign:
            raise UserError(
                f"{self.folder}: is where weft would keep its shards, but holds {foreign[0]!r}, which is not one; "
                "move it, or choose another output"
            )

    def __contains__(self, number: int) -> bool:
        return self._path(number).exists()

    def write(self, number: int, content: bytes) -> None:
        self._write(self._path(number), content)

    def finish(self, count: int, join: Callable[[Iterator[Path], Path], None]) -> None:
        """Join parts 0 to `count` into the output, all of it or nothing, and clear the folder away."""
        with replacing(self.output, self.folder) as whole:
            join((self._path(number) for number in range(count)), whole)
            sync(whole)
        sync(self.output.parent)
        self._clear()
        self._remove()

    def close(self) -> None:
        self._lock.close()

    def _remove(self) -> None:
        with suppress(OSError):  # not empty: somebody put a file of their own into it
            (self.folder / ".lock").unlink()
            self.folder.rmdir()

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08d}.part"

    def _write(self, path: Path, content: bytes) -> None:
        with replacing(path) as temporary:
            temporary.write_bytes(content)
            sync(temporary)

    def _clear(self) -> None:
        """The manifest goes last: until then it says whose the rest is."""
        for path in [*self.folder.glob("*.part"), self.folder / MANIFEST]:
            path.unlink(missing_ok=True)
