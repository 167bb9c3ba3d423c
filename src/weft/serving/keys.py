"""API keys from a file, one per line."""

import hmac
from collections.abc import Sequence
from pathlib import Path

from weft.foundation.errors import UserError


def read_keys(file: Path | None) -> tuple[bytes, ...]:
    """Read the keys of a file; empty lines and lines that start with # are skipped. No file means no keys."""
    if file is None:
        return ()
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--api-key-file {file}: cannot be read ({error})") from None
    keys = {number: line.strip() for number, line in enumerate(lines, 1) if line.strip() and line.strip()[0] != "#"}
    if not keys:
        raise UserError(f"--api-key-file {file}: has no key; expected one per line")
    for number, key in keys.items():
        if not key.isascii() or not key.isprintable() or " " in key:
            raise UserError(f"{file}:{number}: a key must consist of visible ASCII characters without spaces")
    return tuple(key.encode() for key in keys.values())


def is_allowed(header: bytes | None, keys: Sequence[bytes]) -> bool:
    """Whether `Authorization: Bearer KEY` has one of the keys; compared in constant time."""
    if not keys:
        return True
    scheme, _, given = (header or b"").partition(b" ")
    # every key is compared, also after a match, so that the time does not depend on the keys
    matches = [hmac.compare_digest(given.strip(), key) for key in keys]
    return scheme.lower() == b"bearer" and any(matches)
