"""Starts processes that train together, without torchrun, and trains recipes in them.

As a program it is one of them: `together.py FOLDER DEVICE` trains every recipe of FOLDER/recipes.json into FOLDER/NAME.
The device `cuda` is a simulated GPU for each process.
"""

import json
import os
import socket
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

from tests.simulated_gpu import simulated_gpu
from weft.api import Quiet
from weft.evaluation import bootstrap
from weft.recipes.recipe import parse_recipe
from weft.run import train_run
from weft.training.distributed import Processes, join

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def variables(rank: int, count: int, port: int) -> dict[str, str]:
    """What torchrun would set."""
    path = f"{ROOT}:{ROOT / 'src'}"
    group = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return dict(os.environ) | {key: str(value) for key, value in group.items()} | {"PYTHONPATH": path}


def start_together(command: list[str], count: int) -> list[subprocess.Popen[str]]:
    port = free_port()
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return [
        subprocess.Popen([sys.executable, *command], env=variables(rank, count, port), **pipes) for rank in range(count)
    ]


def train_together(folder: Path, recipes: dict[str, dict[str, Any]], count: int = 2, device: str = "cpu") -> None:
    """Every recipe, by name, into FOLDER/NAME."""
    folder.mkdir(exist_ok=True)
    (folder / "recipes.json").write_text(json.dumps(recipes), encoding="utf-8")
    for process in start_together([__file__, str(folder), device], count):
        _, errors = process.communicate(timeout=1800)
        assert process.returncode == 0, errors


def train_all(folder: Path, recipes: dict[str, dict[str, Any]], processes: Processes, device: str = "cpu") -> None:
    torch.randn_like = torch.ones_like  # SMART's noise is drawn for all rows at once, so it depends on the share
    bootstrap.ROUNDS = 20
    for name, content in recipes.items():
        train_run(parse_recipe(content, name), folder / name, Quiet(), device=device, processes=processes)


if __name__ == "__main__":
    target, device = Path(sys.argv[1]), sys.argv[2]
    os.environ["LOCAL_RANK"] = "0"  # as on machines of their own, each with one GPU
    with simulated_gpu() if device == "cuda" else nullcontext(), join(device) as group:
        train_all(target, json.loads((target / "recipes.json").read_text()), group, device)
    # Under load torch's process group sometimes aborts in the teardown of the interpreter, when all work is done.
    sys.stdout.flush()
    os._exit(0)
