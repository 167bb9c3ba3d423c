"""Shipped files (recipes, studies, sweeps, starter data), and the loader of TOML files."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TypeVar

from weft.foundation.content import Content, parse_toml, read_text
from weft.foundation.errors import UserError

Entry = TypeVar("Entry")
LISTED = 20
"""Maximum number of names that a message lists."""


def shipped_folder(name: str) -> Path:
    """Path of a shipped folder: `recipes`, `recipes/reports`, `studies`, `sweeps` or `starter`."""
    return Path(str(resources.files("weft"))) / "recipes" / "shipped" / name


@cache
def shipped_texts(name: str) -> dict[str, str]:
    """Name -> text of every TOML file in a shipped folder, sorted by name."""
    files = sorted(shipped_folder(name).glob("*.toml"), key=lambda file: file.name)
    return {file.stem: file.read_text(encoding="utf-8") for file in files}


def pick(name: str, known: Mapping[str, Entry], what: str) -> Entry:
    """Look up an entry by name; an unknown name raises UserError with the closest match. `what` is e.g. "recipe"."""
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        listed = f"expected one of {', '.join(known)}" if len(known) <= LISTED else f"`weft {what}s` lists them"
        hint = f"did you mean {near[0]!r}?" if near else listed
        raise UserError(f"{name}: is neither a file nor a shipped {what}; {hint}")
    return known[name]


@dataclass(frozen=True)
class TomlFile:
    """A TOML file that a user named, or a shipped one."""

    where: str
    """Name of the file in messages."""
    folder: Path
    """Folder that relative paths in the file start from."""
    content: Content


def load_toml(source: str | Path, what: str, shipped: Callable[[str], str]) -> TomlFile:
    """Load a TOML file by path or shipped name. `what` is e.g. "recipe"; `shipped` returns a shipped file's text."""
    path = Path(source)
    if path.is_file():
        return TomlFile(str(path), path.parent, parse_toml(read_text(path, f"a {what}"), str(path)))
    if path.suffix == ".toml":
        raise UserError(f"{path}: there is no such file")
    return TomlFile(str(source), Path(), parse_toml(shipped(str(source)), str(source)))
