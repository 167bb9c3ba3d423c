"""What a second process brings on one machine, against a second thread.

    python benchmarks/distributed.py [--data-dir DIR] [--steps 6] [--rounds 3] [--cores 2]

All train the same windows, three tasks of 16 rows each: a single process with one thread, one process with a thread
for each core, and a process with one thread for each core. two_vs_one: tokens per second of the last against those of
the second; higher is better. sync_seconds: what it takes to sum the gradients of all parameters once.
predicted_seconds: a step of several processes by the model of docs/scaling.md, from the single one's rate and that sum.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

from sides import Ratio, alternate, recipe_for, show

ABOUT = {"two_vs_one": "tokens per second of one process for each core against one process with all cores as threads"}


def work(data_dir: Path | None, steps: int) -> None:
    """One of the processes: trains, and the first one prints what it measured."""
    from weft.build import assemble
    from weft.recipes.recipe import load_recipe
    from weft.training.distributed import join

    name, settings = recipe_for(data_dir)
    with join("cpu") as processes:
        made = assemble(load_recipe(name, settings=settings, data_dir=data_dir), device="cpu", processes=processes)
        made.network.train()
        for step in range(2):  # the first ones are slower
            made.step(made.plan.window(step), 1e-5)
        start = time.perf_counter()
        tokens = sum(made.step(made.plan.window(2 + step), 1e-5).tokens for step in range(steps))
        seconds = time.perf_counter() - start
        parameters = [p for p in made.network.parameters() if p.requires_grad]
        syncs = []
        for _ in range(3):
            before = time.perf_counter()
            processes.sum_gradients(parameters)
            syncs.append(time.perf_counter() - before)
        found = {
            "tokens_per_second": tokens / seconds,
            "step_seconds": seconds / steps,
            "sync_seconds": statistics.median(syncs),
            "parameters": sum(p.numel() for p in parameters),
            "tokens_per_step": tokens / steps,
        }
        if processes.leads:
            print(json.dumps(found))


def measure(processes: int, threads: int, options: argparse.Namespace) -> dict[str, float]:
    """Start them and wait for the first one's last line."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, __file__, "--worker", "--steps", str(options.steps)]
    command += ["--data-dir", str(options.data_dir)] if options.data_dir else []
    started = []
    for rank in range(processes):
        group = {"RANK": rank, "WORLD_SIZE": processes, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        environment = {**os.environ, **{k: str(v) for k, v in group.items()}, "OMP_NUM_THREADS": str(threads)}
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment))
    said = [process.communicate()[0] for process in started]
    assert all(process.returncode == 0 for process in started)
    found: dict[str, float] = json.loads(said[0].splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.data_dir, options.steps)
        return
    sides = {"single": (1, 1), "one": (1, options.cores), "two": (options.cores, 1)}
    seen: dict[str, list[dict[str, float]]] = {name: [] for name in sides}

    def side(name: str) -> float:
        seen[name].append(measure(*sides[name], options))
        return seen[name][-1]["tokens_per_second"]

    measured = alternate({name: lambda name=name: side(name) for name in sides}, options.rounds)
    middle = {
        key: {name: round(statistics.median(one[key] for one in rounds), 4) for name, rounds in seen.items()}
        for key in ("tokens_per_second", "step_seconds", "sync_seconds", "tokens_per_step", "parameters")
    }
    alone = middle["step_seconds"]["single"] / options.cores
    further = {**middle, "predicted_seconds": round(alone + middle["sync_seconds"]["two"], 4), "cores": options.cores}
    show({"two_vs_one": Ratio.of(measured["two"], measured["one"])}, ABOUT, further)


if __name__ == "__main__":
    main()
