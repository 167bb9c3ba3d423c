"""Files that are there whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path, beside: Path | None = None) -> Iterator[Path]:
    """A file to write. It takes the place of `path` if everything went well, and is gone if anything did not.

    Its name is one that no other process uses, in the same folder or in the folder `beside`.
    """
    temporary = (beside or path.parent) / f".{path.name}.{os.getpid()}.tmp"
    try:
        yield temporary
        temporary.replace(path)
    finally:  # a full disk should not stay full because of half a file
        temporary.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    with replacing(path) as file:
        file.write_text(text, encoding="utf-8")
