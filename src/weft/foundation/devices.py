"""Device selection: the CPU or a CUDA device, and what the system says of the CPU."""

import re
from pathlib import Path

import torch

from weft.foundation.errors import UserError


def choose_device(name: str) -> torch.device:
    """Return the device for `--device`; `auto` is a GPU if torch finds one, else the CPU. `cuda:N` becomes current."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise UserError(f"--device {name}: expected auto, cpu, cuda or cuda:N")
    device = torch.device(name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UserError(f"--device {name}: torch finds no CUDA device here; use --device cpu")
    found = torch.cuda.device_count() if device.type == "cuda" else 0
    if device.index is not None and device.index >= found:
        known = "cuda:0" if found == 1 else f"cuda:0 to cuda:{found - 1}"
        raise UserError(f"--device {name}: torch finds {known} here; use one of them")
    if device.index is not None:
        torch.cuda.set_device(device)  # seeds and memory statistics are those of the current device
    return device


def processor_entry(name: str, file: Path = Path("/proc/cpuinfo")) -> str | None:
    """Return what Linux says of the first processor under `name`: "model name" or "vendor_id". None elsewhere."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError:
        return None
    found = re.search(rf"^{re.escape(name)}[ \t]*:[ \t]*(.+?)[ \t]*$", text, re.MULTILINE)
    return found and found[1]
