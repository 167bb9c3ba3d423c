"""NumPy arrays in the cache folder: written atomically, verified by digest, memory-mapped."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.data.tokens import PRIVATE, private_folder
from weft.foundation.atomic import replacing, sha256, write_whole


def array_folder(name: str) -> Path:
    """Return a folder for arrays in the cache folder."""
    folder = private_folder() / name
    folder.mkdir(exist_ok=True)
    return folder


def store_array(values: NDArray[Any], target: Path) -> NDArray[Any]:
    """Write an array, and its digest in a JSON file beside it; return it mapped into memory."""
    with replacing(target, mode=PRIVATE) as temporary:
        with temporary.open("wb") as handle:
            np.save(handle, values, allow_pickle=False)
        write_whole(target.with_suffix(".json"), json.dumps({"digest": sha256(temporary)}), mode=PRIVATE)
    return _mapped(target)


def open_array(path: Path) -> NDArray[Any] | None:
    """Map an array into memory; None if the file is missing or does not match its digest. Reads the whole file."""
    try:
        notes = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        if notes["digest"] != sha256(path):
            return None
        return _mapped(path)
    except (OSError, ValueError, KeyError, TypeError):
        return None  # missing or damaged: computed again


def _mapped(path: Path) -> NDArray[Any]:
    found: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    return found
