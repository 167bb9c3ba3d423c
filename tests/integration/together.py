"""Starts processes that train together, without torchrun, and trains recipes in them.

As a program it is one of them: `together.py FOLDER` trains every recipe of FOLDER/recipes.json into FOLDER/NAME.
"""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

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


def train_together(folder: Path, recipes: dict[str, dict[str, Any]], count: int = 2) -> None:
    """Every recipe, by name, into FOLDER/NAME."""
    folder.mkdir(exist_ok=True)
    (folder / "recipes.json").write_text(json.dumps(recipes), encoding="utf-8")
    for process in start_together([__file__, str(folder)], count):
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors


def train_all(folder: Path, recipes: dict[str, dict[str, Any]], processes: Processes) -> None:
    torch.randn_like = torch.ones_like  # SMART's noise is drawn for all rows at once, so it depends on the share
    bootstrap.ROUNDS = 20
    for name, content in recipes.items():
        train_run(parse_recipe(content, name), folder / name, Quiet(), device="cpu", processes=processes)


if __name__ == "__main__":
    with join("cpu") as group:
        train_all(Path(sys.argv[1]), json.loads((Path(sys.argv[1]) / "recipes.json").read_text()), group)
    # Under load torch's process group sometimes aborts in the teardown of the interpreter, when all work is done.
    sys.stdout.flush()
    os._exit(0)
