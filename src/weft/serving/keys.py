"""API keys from a file, one a line."""

import hmac
from collections.abc import Sequence
from pathlib import Path

from weft.foundation.errors import UserError


def read_keys(file: Path | None) -> tuple[bytes, ...]:
    """The keys of a file; empty lines and lines that start with # are left out. No file, no keys."""
    if file is None:
        return ()
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--api-key-file {file}: cannot be read ({error})") from None
    keys = {number: line.strip() for number, line in enumerate(lines, 1) if line.strip() and line.strip()[0] != "#"}
    if not keys:
        raise UserError(f"--api-key-file {file}: has no key; expected one a line")
    for number, key in keys.items():
        if not key.isascii() or not key.isprintable() or " " in key:
            raise UserError(f"{file}:{number}: a key is visible ASCII characters without blanks")
    return tuple(key.encode() for key in keys.values())


def is_allowed(header: bytes | None, keys: Sequence[bytes]) -> bool:
    """Whether `Authorization: Bearer KEY` names one of the keys; the time it takes tells nothing of them."""
    if not keys:
        return True
    scheme, _, given = (header or b"").partition(b" ")
    # every key is compared, also after a match
    matches = [hmac.compare_digest(given.strip(), key) for key in keys]
    return scheme.lower() == b"bearer" and any(matches)
