"""Atomic writes that follow no symbolic link, fsync, and checksums of files."""

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal

from weft.foundation.errors import UserError


@contextmanager
def replacing(path: Path, beside: Path | None = None, *, mode: int = 0o666) -> Iterator[Path]:
    """Yield a new, empty file to write. It replaces `path` on success and is deleted on failure.

    The file has a random name in the same folder, or in the folder `beside`. Its permissions are `mode` less the umask.
    """
    temporary = (beside or path.parent) / f".{path.name}.{secrets.token_hex(8)}.tmp"
    # O_EXCL fails on any existing entry of this name, a symbolic link included
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode))
    try:
        yield temporary
        temporary.replace(path)
    finally:  # a partial file must not keep a full disk full
        temporary.unlink(missing_ok=True)


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """Create a folder atomically: yield a temporary folder, rename it to `out` on success, delete it on failure."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"-o {out}: already exists; choose another folder")
    temporary = out.with_name(f".{out.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir(parents=True)
    except OSError as error:
        raise UserError(f"-o {out}: cannot be written ({error.strerror})") from None
    try:
        yield temporary
        temporary.replace(out)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_whole(path: Path, text: str, *, mode: int = 0o666) -> None:
    """Write a text file atomically."""
    with replacing(path, mode=mode) as file:
        file.write_text(text, encoding="utf-8")


def open_in_place(path: Path, how: Literal["w", "a"]) -> IO[str]:
    """Open a file for writing in place, such as a log or a lock; fails if its name is a symbolic link."""

    def no_follow(name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NOFOLLOW, 0o666)

    return open(path, how, encoding="utf-8", opener=no_follow)


def require_no_links(folder: Path) -> None:
    """Reject a folder that weft writes into, such as an untrusted run, if any entry in it is a symbolic link."""
    for place, folders, files in os.walk(folder):
        for name in sorted([*folders, *files]):
            if (found := Path(place, name)).is_symlink():
                raise UserError(
                    f"{found}: is a symbolic link to {found.readlink()}; weft would write through it. "
                    "Replace it with the file or folder itself, or choose another folder"
                )


def give_usual_mode(path: Path) -> None:
    """Give a file that a library created as private the umask's usual permissions for a new file."""
    probe = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
    try:
        path.chmod(os.fstat(descriptor).st_mode & 0o777)
    finally:
        os.close(descriptor)
        probe.unlink()


def sha256(path: Path) -> str:
    """Return the SHA-256 digest of a file's bytes, in hexadecimal."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def sync(path: Path) -> None:
    """Flush a file or folder to disk (fsync)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
