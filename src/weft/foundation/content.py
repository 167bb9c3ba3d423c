"""Plain content (nested tables, as in TOML and JSON): read, change a key, write."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from weft.foundation.errors import UserError

LARGEST_JSON = 32_000_000
"""Maximum bytes of a JSON file; as Python objects it takes thirty times as much memory."""
Content = dict[str, Any]


def put(content: Content, key: str, value: Any) -> None:
    """Set `a.b.c`. Missing tables are created; `*` matches every existing key of a table.

    A variant's short form is expanded: for `loss = "mse"`, the key `loss.reduction` makes it
    `loss = { name = "mse", reduction = ... }`. Raises ValueError if a key would have to be inside a single value.
    """
    first, _, rest = key.partition(".")
    for name in list(content) if first == "*" else [first]:
        if not rest:
            content[name] = value
            continue
        inner = content.get(name, {})
        content[name] = {"name": inner} if isinstance(inner, str) else inner
        if not isinstance(content[name], dict):
            raise ValueError(f"{name} is a single value and has no keys")
        put(content[name], rest, value)


def remove(content: Content, key: str) -> bool:
    """Remove `a.b.c`, with `*` for every key of a table; returns whether it existed."""
    first, _, rest = key.partition(".")
    found = False
    for name in list(content) if first == "*" else [first]:
        if name not in content:
            continue
        if not rest:
            del content[name]
            found = True
        elif isinstance(content[name], dict):
            found |= remove(content[name], rest)
    return found


def differences(old: Any, new: Any, key: str = "") -> list[tuple[str, Any, Any]]:
    """(key, old value, new value) wherever two nested settings differ."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return [] if old == new else [(key, old, new)]
    found = []
    for name in dict.fromkeys([*old, *new]):
        inner = f"{key}.{name}" if key and key != "recipe" else name
        found += differences(old.get(name), new.get(name), inner)
    return found


def toml_text(content: Content, sections: str = "tasks") -> str:
    """Format content as TOML that reads back as the same content: single values first, then a section for each table.

    Every table in `sections` gets its own section.
    """
    lines = [f"{key} = {toml_value(value)}" for key, value in content.items() if not isinstance(value, dict)]
    tables = {key: value for key, value in content.items() if isinstance(value, dict)}
    named = {f"{sections}.{_toml_key(name)}": inner for name, inner in tables.pop(sections).items()} | tables
    for title, table in named.items():
        lines += ["", f"[{title}]", *(f"{_toml_key(key)} = {toml_value(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def toml_value(value: Any) -> str:
    """Format one value as TOML, on one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_toml_key(key)} = {toml_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)  # TOML's strings, numbers and booleans are JSON's


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)


def read_text(path: Path, what: str) -> str:
    """Read a text file; `what` says in messages what it should be."""
    try:
        return path.read_text(encoding="utf-8")
    except (UnicodeDecodeError, OSError) as error:
        raise UserError(f"{path}: cannot be read as {what} ({error})") from None


def parse_toml(text: str, where: str) -> Content:
    """Parse TOML; `where` names the source in messages."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UserError(f"{where}: is not TOML ({error})") from None


def read_json(path: Path) -> Content:
    """Read a JSON object from an untrusted file."""
    if path.is_file() and (size := path.stat().st_size) > LARGEST_JSON:
        raise UserError(f"{path}: has {size:,} bytes; expected at most {LARGEST_JSON:,}")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:  # ValueError: not UTF-8, or not JSON
        raise UserError(f"{path}: is not JSON ({error})") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: contains a JSON {type(content).__name__}, expected an object")
    return content
