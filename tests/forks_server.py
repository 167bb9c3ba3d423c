"""Runs `weft` in forks of a process that has everything imported, and kills them where it is told to.

One JSON object a line on stdin: {"arguments": [...], "folder": where output goes, "cwd": where to run, "environment":
{...}, "resamples": of a bootstrap}, and if wanted "code": Python to run instead of a command, "kill": [phase, n],
"memory": bytes more than at the start, "full": n-th sync that finds the disk full, "gpus": how many are simulated. One
JSON line back: {"code": exit code, or minus the signal}.

The parent never trains: torch cannot run a backward pass in a fork of a process that has.
"""

import errno
import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow.dataset
import torch._dynamo

import weft.api
import weft.cli
import weft.cli.bulk
import weft.cli.terminal
import weft.data.tables
import weft.inference.bulk.job
import weft.inference.model
import weft.recipes.check
import weft.recipes.init.writer
import weft.report.live
import weft.report.page
from tests.simulated_gpu import simulated_gpu
from weft.evaluation import bootstrap
from weft.inference import evaluate
from weft.inference.bulk import executors, parts
from weft.run import train_run
from weft.runs import folder as run_folder
from weft.runs import model_folder
from weft.training import checkpoint, evaluator
from weft.training.step import Step

# phase -> (who holds the function, its name): the run is killed when the n-th call of it has been made
PHASES: dict[str, list[tuple[Any, str]]] = {
    "step": [(Step, "_backward")],
    "between steps": [(run_folder.RunFolder, "log")],
    "checkpoint": [(checkpoint, "sync")],
    "evaluation": [(evaluate, "run_over")],
    "answering a shard": [(executors.Answerer, "__call__")],
    "saving a shard": [(parts, "sync")],
    "loading the best model": [(evaluator, "load_weights")],
    "saving weights": [(model_folder, "save_weights")],
    "saving the model": [(model_folder, "save_weights"), (run_folder, "sync")],
}


def after_calls(places: list[tuple[Any, str]], n: int, act: Callable[[], None]) -> None:
    """Do something after the n-th call of any of these functions."""
    calls = 0

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            nonlocal calls
            result = original(*arguments, **named)
            calls += 1
            if calls == n:
                act()
            return result

        return wrapped

    for holder, name in places:
        setattr(holder, name, wrap(getattr(holder, name)))


def disk_is_full() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def run(request: dict[str, Any]) -> None:
    """In the child: never returns."""
    folder = Path(request["folder"])
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    bootstrap.ROUNDS = request["resamples"]
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    if request.get("kill"):
        phase, n = request["kill"]
        after_calls(PHASES[phase], n, lambda: os.kill(os.getpid(), signal.SIGKILL))
    if request.get("full"):
        after_calls([(checkpoint, "sync")], request["full"], disk_is_full)
    if request.get("memory"):
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        limit = used + request["memory"]
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    sys.argv = ["weft", *request["arguments"]]
    code = 0
    try:
        with simulated_gpu(request["gpus"]) if request.get("gpus") else nullcontext():
            if "code" in request:
                sys.path.insert(0, request["cwd"])
                exec(request["code"], {"__name__": "__main__"})
            else:
                weft.cli.main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 99
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main() -> None:
    # imported for their own sake, like the commands' modules above; the first optimizer imports the compiler
    assert train_run
    assert pyarrow.dataset
    assert torch._dynamo
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            run(json.loads(line))
        _, status = os.waitpid(child, 0)
        print(json.dumps({"code": os.waitstatus_to_exitcode(status)}), flush=True)


if __name__ == "__main__":
    main()
