"""One run of a study, in a process of its own."""

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
    """All that a process needs to know, as plain values that travel anywhere."""

    name: str
    """ARM-SEED"""
    recipe: Content
    steps: int
    out: str
    log: str
    device: str
    threads: int | None
    """how many torch may use; its own choice unless said"""
    trust_code: bool = False
    """whether the recipe may name code, which is imported"""


class _Log:
    """Follows a run into its log file."""

    def started(self, progress: Progress, steps: int) -> None:
        print(f"step {progress.step} of {steps}", flush=True)

    def stepped(self, step: int, report: StepReport, seconds: float) -> None: ...

    def evaluated(self, evaluation: Evaluation, is_best: bool) -> None:  # noqa: ARG002
        print(f"after {evaluation.step} steps: overall {evaluation.overall:.4f}", flush=True)

    def noted(self, message: str) -> None:
        print(f"note: {message}", flush=True)


def run_job(job: StudyJob) -> int:
    """Train one run, or go on with it; everything it says goes into its log. Returns an exit code."""
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
        except Exception as error:  # a fault of one run is recorded, and the others go on
            traceback.print_exc()
            print(f"{type(error).__name__}: {error}")
            return 1


def _train(job: StudyJob) -> None:
    if job.threads is not None:
        torch.set_num_threads(job.threads)
    out = Path(job.out)
    recipe = parse_recipe(job.recipe, job.name)
    train_run(recipe, out, _Log(), steps=job.steps, device=job.device, resume=True, trust_code=job.trust_code)
    shutil.rmtree(RunPaths(out).checkpoints, ignore_errors=True)  # a run that has ended needs none, and they are large


def last_words(job: StudyJob) -> str:
    """The last line of a run's log."""
    try:
        lines = Path(job.log).read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1] if lines else "left no message"


def die_with(parent: int) -> None:
    """End at once when the process that started this one is gone: nobody would hear of the run's end."""
    import threading
    from multiprocessing.connection import wait

    def watch() -> None:
        wait([parent])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
