"""Hardware and software that a run was trained with."""

import platform
from collections.abc import Mapping
from dataclasses import asdict
from importlib import metadata

import torch

from weft.foundation.devices import processor_entry
from weft.foundation.own_code import SourceFile
from weft.runs.records import RunEnvironment


def environment(device: torch.device, processes: int, code: Mapping[str, SourceFile]) -> RunEnvironment:
    """Record this machine for environment.json; `code` are the files of the components that a recipe names by `use`."""
    packages = ("weft", "torch", "tokenizers", "safetensors", "numpy", "torchjd")
    return RunEnvironment(
        code={address: asdict(source) for address, source in code.items()},
        python=platform.python_version(),
        system=platform.platform(),
        processor=processor_entry("model name") or platform.processor() or platform.machine(),
        device=str(device),
        threads=torch.get_num_threads(),
        capability=torch.backends.cpu.get_cpu_capability(),
        packages={name: metadata.version(name) for name in packages},
        processes=processes,
    )
