"""Tensors from torch's old archive, `pytorch_model.bin`, which may hold less than it says, or code."""

import warnings
import zipfile
from pathlib import Path

import torch
from torch import Tensor

from weft.foundation.errors import UserError

KEPT = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def load_archive(path: Path) -> dict[str, Tensor]:
    """ProbabilityKind tensors on the CPU; never runs code that the archive holds."""
    _require_plain(path)
    try:
        with warnings.catch_warnings():  # torch's hints are for programmers
            warnings.simplefilter("ignore")
            loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # whatever a damaged or hostile archive makes torch raise
        raise UserError(
            f"{path}: cannot be read as plain tensors. It is damaged, or holds code, which weft never runs; "
            "get the body as model.safetensors"
        ) from None
    if not isinstance(loaded, dict) or not all(isinstance(v, Tensor) for v in loaded.values()):
        raise UserError(f"{path}: holds something else than named tensors")
    for name, tensor in loaded.items():
        if tensor.layout != torch.strided or tensor.untyped_storage().nbytes() < tensor.numel() * tensor.itemsize:
            raise UserError(f"{path}: tensor {name} repeats its numbers instead of holding them")
    return loaded


def _require_plain(path: Path) -> None:
    """torch writes its archives uncompressed, so what they hold is never larger than the file."""
    if not zipfile.is_zipfile(path):
        return  # the format before that: numbers follow each other in the file
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        raise UserError(f"{path}: is damaged ({error}); get an intact copy") from None
    compressed = any(entry.compress_type != zipfile.ZIP_STORED for entry in entries)
    if compressed or sum(entry.file_size for entry in entries) > path.stat().st_size:
        raise UserError(f"{path}: is compressed, which torch's archives are not; get the body as model.safetensors")


def require_held(tensors: dict[str, Tensor], file: Path) -> None:
    """Tensors that share their numbers would need more memory than the file has bytes; and numbers must be floats."""
    for name, tensor in tensors.items():
        if tensor.dtype not in KEPT:
            raise UserError(f"{file}: {name} holds {tensor.dtype}, expected floats of 16, 32 or 64 bits")
    if sum(tensor.numel() * tensor.itemsize for tensor in tensors.values()) > file.stat().st_size:
        raise UserError(f"{file}: its tensors hold more numbers than the file; get the body as model.safetensors")
