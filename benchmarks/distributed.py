"""What a second process brings on one machine: one process with two threads against two processes with one thread each.

    python benchmarks/distributed.py [--data-dir DIR] [--steps 8] [--rounds 3] [--cores 2]

Both train the same windows, three tasks of 16 rows each. two_vs_one: tokens per second of all processes against one
process; higher is better. sync_seconds: what it takes to sum the gradients of all parameters once.
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
    from weft.experiment import assemble
    from weft.recipe import load_recipe
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
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.data_dir, options.steps)
        return
    seen: dict[str, list[dict[str, float]]] = {"one": [], "two": []}

    def side(name: str, processes: int, threads: int) -> float:
        seen[name].append(measure(processes, threads, options))
        return seen[name][-1]["tokens_per_second"]

    measured = alternate(
        {"one": lambda: side("one", 1, options.cores), "two": lambda: side("two", options.cores, 1)}, options.rounds
    )
    further = {
        key: {name: round(statistics.median(one[key] for one in rounds), 4) for name, rounds in seen.items()}
        for key in ("tokens_per_second", "step_seconds", "sync_seconds")
    }
    last = seen["two"][-1]
    further |= {"parameters": int(last["parameters"]), "tokens_per_step": last["tokens_per_step"]}  # type: ignore[dict-item]
    show({"two_vs_one": Ratio.of(measured["two"], measured["one"])}, ABOUT, {**further, "cores": options.cores})


if __name__ == "__main__":
    main()
