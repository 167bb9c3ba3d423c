"""Exports made on the fly for an engine of `weft serve`, kept in the user's cache for the next start."""

import hashlib
import os
import secrets
import shutil
from importlib.metadata import version
from pathlib import Path

from weft.data.tokens import private_folder
from weft.export import onnx
from weft.export.source import open_source
from weft.foundation.errors import UserError
from weft.inference.onnx_engine import is_onnx_folder
from weft.runs.model_folder import model_digest, model_folder, read_settings

ENGINES = ("torch", "onnx", "onnx-int8")
LIBRARIES = ("weft", "torch", "onnx", "onnxscript", "onnxruntime")
"""packages whose version can change a graph"""


def engine_folder(model: Path, engine: str, *, trust_code: bool = False) -> Path:
    """Return the folder to load for an engine: the model's own, or an ONNX export of it from the user's cache.

    A missing or damaged export is made. Its key is the content of the model, the engine and the versions of the
    libraries. Scores are not computed: int8 changes answers, and `weft export --quantize int8` shows by how much.
    """
    if engine not in ENGINES:
        raise UserError(f"--engine {engine}: expected one of {', '.join(ENGINES)}")
    folder = model_folder(model)
    if is_onnx_folder(folder):
        found = _engine_of(folder)
        if engine != found:
            raise UserError(f"--engine {engine}: {folder} is an export for {found}; use the run that it came from")
        return folder
    if engine == "torch":
        return folder
    onnx.require_libraries(f"--engine {engine}")
    out = private_folder() / "exports" / _key(folder, engine)
    if not _is_sound(out):
        shutil.rmtree(out, ignore_errors=True)
        _export(folder, engine, out, trust_code)
    return out


def _engine_of(folder: Path) -> str:
    """Return the engine of an ONNX export."""
    made = read_settings(folder).get("export")
    return "onnx-int8" if isinstance(made, dict) and made.get("quantize") == "int8" else "onnx"


def _key(folder: Path, engine: str) -> str:
    parts = [model_digest(folder), engine, *(f"{name} {version(name)}" for name in LIBRARIES)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _is_sound(folder: Path) -> bool:
    try:
        read_settings(folder)  # compares all checksums
    except UserError:
        return False
    return True


def _export(model: Path, engine: str, out: Path, trust_code: bool) -> None:
    """Write an export beside `out` and rename it. If another process was faster, its export stays."""
    temporary = out.with_name(f".{out.name}.{secrets.token_hex(8)}.tmp")
    try:
        temporary.mkdir(mode=0o700, parents=True)
        source = open_source(model, trust_code)
        try:
            onnx.write(source, temporary, f"--engine {engine}")
        except UserError as error:
            raise UserError(f"{error}. `--engine torch` serves every model") from None
        if engine == "onnx-int8":
            onnx.quantize_graphs(source, temporary)
        try:
            temporary.rename(out)
        except OSError:
            if not _is_sound(out):
                raise
    except OSError as error:
        raise UserError(
            f"{out.parent}: the export for --engine {engine} cannot be written ({os.strerror(error.errno or 0)}); set "
            "WEFT_CACHE to a folder that can, or serve the output of `weft export`"
        ) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
