"""Checkpoints: the complete state of a run, written atomically so that a crash loses no checkpoint.

A checkpoint is written under a temporary name with checksums, synced with fsync and renamed. The last two are kept; if
the newest is damaged, the one before it is used. Files are safetensors and JSON, without pickle.
"""

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from pydantic import Field
from safetensors.torch import load_file
from torch import Tensor, nn

from weft.foundation.atomic import sha256, sync
from weft.foundation.config import Config
from weft.foundation.errors import UserError
from weft.tasks.store import copy_exactly, save_tensors

FORMAT = 1
KEPT = 2
"""number of checkpoints that are kept"""


class CheckpointConfig(Config):
    """When checkpoints are written."""

    every_steps: int = Field(default=200, ge=1)
    """Steps between checkpoints. A checkpoint is also written at the end of each epoch."""


@dataclass
class Progress:
    """The progress of a run. Together with the tensors, this is its complete state."""

    step: int = 0
    """steps done"""
    best_step: int | None = None
    """step of the best evaluation"""
    best_score: float | None = None
    """score of the best evaluation"""
    waited: int = 0
    """evaluations since the best one"""
    metrics_bytes: int = 0
    """size of metrics.jsonl after the steps done"""
    seconds: float = 0.0
    """training time"""
    tokens: int = 0
    """tokens processed"""
    loss_scale: dict[str, float] = field(default_factory=dict)
    """state of fp16 loss scaling; empty otherwise"""
    cpu_seconds: float = 0.0
    """CPU time of the process, over all of its threads"""


class Checkpoints:
    """The checkpoint folder of one run."""

    def __init__(
        self, folder: Path, module: nn.Module, optimizer: torch.optim.Optimizer, settings: dict[str, Any]
    ) -> None:
        self.folder = folder
        self.module = module
        self.optimizer = optimizer
        self.settings = settings
        """settings of the run; a run with other settings cannot be resumed"""

    def save(self, progress: Progress) -> Path:
        """Write a checkpoint atomically and delete old ones."""
        target = self.folder / f"step-{progress.step:06d}"
        temporary = self.folder / f".{target.name}.tmp"
        for left_over in self.folder.glob(".step-*.tmp"):  # of a process that was killed or ran out of disk space
            shutil.rmtree(left_over, ignore_errors=True)
        temporary.mkdir(parents=True)
        try:
            self._write(temporary, progress)
        except BaseException:  # an incomplete checkpoint must not keep a full disk full
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        shutil.rmtree(target, ignore_errors=True)
        temporary.rename(target)
        sync(self.folder)
        for old in _all(self.folder)[:-KEPT]:
            shutil.rmtree(old)
        return target

    def _write(self, folder: Path, progress: Progress) -> None:
        save_tensors(_on_cpu(self._weights()), folder / "weights.safetensors")
        save_tensors(_on_cpu(self._moments()), folder / "optimizer.safetensors")
        state = {"format": FORMAT, "settings": self.settings, "progress": asdict(progress)}
        (folder / "state.json").write_text(json.dumps(state, indent=2), encoding="utf-8")
        sums = {path.name: sha256(path) for path in sorted(folder.iterdir())}
        (folder / "checksums.json").write_text(json.dumps(sums, indent=2), encoding="utf-8")
        for path in folder.iterdir():
            sync(path)
        sync(folder)

    def load_latest(self) -> tuple[Progress | None, list[str]]:
        """Restore the newest intact checkpoint; also return warnings about newer, damaged ones."""
        damaged: list[str] = []
        for folder in reversed(_all(self.folder)):
            problem = _damage(folder)
            if problem is None:
                return self._load(folder), [f"{what}; using the checkpoint before it" for what in damaged]
            damaged.append(f"{folder}: {problem}")
        if damaged:
            last = f"no intact checkpoint is left; to start from the beginning, delete {self.folder}"
            raise UserError("\n".join([*damaged, last]))
        return None, []

    def _load(self, folder: Path) -> Progress:
        state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        weights = load_file(folder / "weights.safetensors")
        copy_exactly(self._weights(), weights, str(folder / "weights.safetensors"))
        moments = load_file(folder / "optimizer.safetensors")
        for i, parameter in enumerate(self._optimized()):
            prefix = f"{i}."
            own = {name.removeprefix(prefix): t for name, t in moments.items() if name.startswith(prefix)}
            if own:
                self.optimizer.state[parameter] = {
                    # fused AdamW keeps `step` on the device of the parameter too
                    name: tensor.to(parameter.device).clone()
                    for name, tensor in own.items()
                }
        return Progress(**state["progress"])

    def _weights(self) -> dict[str, Tensor]:
        return {**dict(self.module.named_parameters()), **dict(self.module.named_buffers())}

    def _optimized(self) -> list[nn.Parameter]:
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    def _moments(self) -> dict[str, Tensor]:
        moments = {}
        for i, parameter in enumerate(self._optimized()):
            for name, value in self.optimizer.state.get(parameter, {}).items():
                moments[f"{i}.{name}"] = value
        return moments


def settings_of(folder: Path) -> dict[str, Any] | None:
    """Return the run settings in the newest intact checkpoint of `folder`; None if there is none."""
    for path in reversed(_all(folder)):
        if _damage(path) is None:
            settings: dict[str, Any] = json.loads((path / "state.json").read_text(encoding="utf-8"))["settings"]
            return settings
    return None


def _all(folder: Path) -> list[Path]:
    """List checkpoints, oldest first."""
    if not folder.is_dir():
        return []
    found = [path for path in folder.iterdir() if re.fullmatch(r"step-\d+", path.name)]
    return sorted(found, key=lambda path: int(path.name.removeprefix("step-")))


def _damage(folder: Path) -> str | None:
    """Describe the damage of a checkpoint; None if it is intact."""
    try:
        sums = json.loads((folder / "checksums.json").read_text(encoding="utf-8"))
        for name in ("weights.safetensors", "optimizer.safetensors", "state.json"):
            if sums.get(name) != sha256(folder / name):
                return f"{name} does not match its checksum"
        version = json.loads((folder / "state.json").read_text(encoding="utf-8"))["format"]
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        return f"is incomplete ({error})"
    return None if version == FORMAT else f"has format {version}, but this version of weft reads format {FORMAT}"


def _on_cpu(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
