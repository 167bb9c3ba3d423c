"""Work folder OUTPUT.parts next to an output: finished shards and a manifest that identifies their job.

Parts are written atomically (temporary file, fsync, rename), so every part file is complete. Only one process at a
time can lock the folder; the kernel releases the lock of a process that dies.
"""

import fcntl
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from weft.foundation.atomic import open_in_place, replacing, require_no_links, sync
from weft.foundation.errors import UserError

MANIFEST = "manifest.json"
ASIDE = "aside"


def parts_folder(output: Path) -> Path:
    return output.with_name(f"{output.name}.parts")


def read_manifest(output: Path) -> dict[str, Any]:
    """Return the manifest of the shards next to an output, or an empty dictionary if there is none."""
    folder = parts_folder(output)
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


class Parts:
    """Locked work folder of one job. Opening it deletes the shards of any other job."""

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
        for half in self.folder.glob(".*.tmp"):  # left by a killed process
            half.unlink()
        if read_manifest(output) != manifest:
            self._clear()
            try:
                self._write(self.folder / MANIFEST, json.dumps(manifest, indent=2).encode())
            except OSError:
                self._remove()
                raise

    def _require_ours(self) -> None:
        """Raise UserError if the folder contains files that weft did not write."""
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

    @property
    def aside(self) -> Path:
        """Folder for other files of the same job, deleted together with the parts."""
        folder = self.folder / ASIDE
        folder.mkdir(exist_ok=True)
        return folder

    def __contains__(self, number: int) -> bool:
        return self._path(number).exists()

    def write(self, number: int, content: bytes) -> None:
        self._write(self._path(number), content)

    def write_aside(self, name: str, content: bytes) -> None:
        self._write(self.aside / name, content)

    def finish(self, count: int, join: Callable[[Iterator[Path], Path], None]) -> None:
        """Join the first `count` parts into the output with an atomic write, then delete the folder."""
        with replacing(self.output, self.folder) as whole:
            join((self._path(number) for number in range(count)), whole)
            sync(whole)
        sync(self.output.parent)
        self._clear()
        self._remove()

    def close(self) -> None:
        self._lock.close()

    def _remove(self) -> None:
        with suppress(OSError):  # not empty: it contains a file that weft did not write
            (self.folder / ".lock").unlink()
            self.folder.rmdir()

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08d}.part"

    def _write(self, path: Path, content: bytes) -> None:
        with replacing(path, self.folder) as temporary:
            temporary.write_bytes(content)
            sync(temporary)

    def _clear(self) -> None:
        """Delete all parts, then the manifest, which identifies the remaining parts until the end."""
        if (self.folder / ASIDE).exists():
            shutil.rmtree(self.folder / ASIDE)
        for path in [*self.folder.glob("*.part"), self.folder / MANIFEST]:
            path.unlink(missing_ok=True)
