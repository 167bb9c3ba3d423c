"""Safe loading of `pytorch_model.bin`, torch's old format, which may be inconsistent or contain code."""

import warnings
import zipfile
from pathlib import Path

import torch
from torch import Tensor

from weft.foundation.errors import UserError

KEPT = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def load_archive(path: Path) -> dict[str, Tensor]:
    """Load the named tensors of an archive on the CPU. Code in the archive is never run."""
    _require_plain(path)
    try:
        with warnings.catch_warnings():  # torch's warnings are meant for developers
            warnings.simplefilter("ignore")
            loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # a damaged or malicious archive can make torch raise anything
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
    """Reject compressed archives: torch does not compress, so the content is never larger than the file."""
    if not zipfile.is_zipfile(path):
        return  # the format before zip archives stores its values contiguously
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        raise UserError(f"{path}: is damaged ({error}); get an intact copy") from None
    compressed = any(entry.compress_type != zipfile.ZIP_STORED for entry in entries)
    if compressed or sum(entry.file_size for entry in entries) > path.stat().st_size:
        raise UserError(f"{path}: is compressed, which torch's archives are not; get the body as model.safetensors")


def require_held(tensors: dict[str, Tensor], file: Path) -> None:
    """Reject tensors that are not floats, and tensors with shared storage that need more memory than the file size."""
    for name, tensor in tensors.items():
        if tensor.dtype not in KEPT:
            raise UserError(f"{file}: {name} holds {tensor.dtype}, expected floats of 16, 32 or 64 bits")
    if sum(tensor.numel() * tensor.itemsize for tensor in tensors.values()) > file.stat().st_size:
        raise UserError(f"{file}: its tensors hold more numbers than the file; get the body as model.safetensors")
