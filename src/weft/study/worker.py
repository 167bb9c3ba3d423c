"""One run of a study, in a separate process."""

import contextlib
import os
import shutil
import traceback
from dataclasses import dataclass
from pathlib import Path

import torch

from weft.evaluation.scoring import Evaluation
from weft.foundation.atomic import open_in_place
from weft.foundation.content import Content
from weft.foundation.errors import Interrupted, RunError, UserError
from weft.recipes.recipe import parse_recipe
from weft.run import train_run
from weft.runs.folder import RunPaths
from weft.training.checkpoint import Progress
from weft.training.step import StepReport

INTERRUPTED = 130


@dataclass(frozen=True)
class StudyJob:
    """The arguments of a run, as plain values that can be pickled."""

    name: str
    """ARM-SEED."""
    recipe: Content
    steps: int
    out: str
    log: str
    device: str
    threads: int | None
    """Number of torch threads. Defaults to torch's choice."""
    trust_code: bool = False
    """Whether to import code that the recipe names."""


class _Log:
    """Prints the progress of a run; stdout is its log file."""

    def started(self, progress: Progress, steps: int) -> None:
        print(f"step {progress.step} of {steps}", flush=True)

    def stepped(self, step: int, report: StepReport, seconds: float) -> None: ...

    def evaluated(self, evaluation: Evaluation, is_best: bool) -> None:  # noqa: ARG002
        print(f"after {evaluation.step} steps: overall {evaluation.overall:.4f}", flush=True)

    def noted(self, message: str) -> None:
        print(f"note: {message}", flush=True)


def run_job(job: StudyJob) -> int:
    """Train or resume one run, with all output in its log file. Returns an exit code."""
    with (
        open_in_place(Path(job.log), "a") as log,
        contextlib.redirect_stdout(log),
        contextlib.redirect_stderr(log),
    ):
        print(f"process {os.getpid()}", flush=True)
        try:
            _train(job)
            return 0
        except Interrupted:
            return INTERRUPTED
        except (UserError, RunError) as error:
            print(error)
            return 1
        except Exception as error:  # an error in one run is recorded and does not stop the others
            traceback.print_exc()
            print(f"{type(error).__name__}: {error}")
            return 1


def _train(job: StudyJob) -> None:
    if job.threads is not None:
        torch.set_num_threads(job.threads)
    out = Path(job.out)
    recipe = parse_recipe(job.recipe, job.name)
    train_run(recipe, out, _Log(), steps=job.steps, device=job.device, resume=True, trust_code=job.trust_code)
    shutil.rmtree(RunPaths(out).checkpoints, ignore_errors=True)  # a finished run needs none, and they are large


def last_words(job: StudyJob) -> str:
    """Return the last line of a run's log."""
    try:
        lines = Path(job.log).read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1] if lines else "no message in its log"


def die_with(parent: int) -> None:
    """Exit as soon as the parent process is gone: nothing would collect the run's result."""
    import threading
    from multiprocessing.connection import wait

    def watch() -> None:
        wait([parent])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
