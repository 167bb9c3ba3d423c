"""Where a run was made."""

import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import torch


def environment(device: torch.device) -> dict[str, Any]:
    """Where a run was made: exact repetition is promised for equal values."""
    packages = ("weft", "torch", "tokenizers", "safetensors", "numpy", "torchjd")
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": _processor(),
        "device": str(device),
        "threads": torch.get_num_threads(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "packages": {name: metadata.version(name) for name in packages},
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
