"""Device selection: the CPU or a CUDA device."""

import re

import torch

from weft.foundation.errors import UserError


def choose_device(name: str) -> torch.device:
    """Return the device for `--device`; `auto` is a GPU if torch finds one, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise UserError(f"--device {name}: expected auto, cpu, cuda or cuda:N")
    device = torch.device(name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UserError(f"--device {name}: torch finds no CUDA device here; use --device cpu")
    return device
