"""Executor that runs jobs in processes of this machine."""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any

from weft.study.executors.base import Ended, StudyExecutor
from weft.study.worker import StudyJob, die_with, last_words, run_job

PATIENCE = 60
"""Seconds that a run has to save its state after SIGTERM."""


class LocalStudyExecutor(StudyExecutor):
    """Forks each job from a fork server with preloaded imports, so that a run starts fast and from a clean state."""

    def run(self, jobs: Sequence[StudyJob]) -> Iterator[Ended]:
        context = get_context("forkserver")
        context.set_forkserver_preload(["weft.study.worker"])
        waiting = list(jobs)
        running: dict[Any, tuple[BaseProcess, StudyJob]] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self.jobs:
                    job = waiting.pop(0)
                    process: BaseProcess = context.Process(target=_main, args=(job,), name=job.name)
                    process.start()
                    running[process.sentinel] = process, job
                for sentinel in wait(list(running)):
                    process, job = running.pop(sentinel)
                    process.join()
                    yield Ended(job, _failure(process.exitcode, job))
        finally:
            for process, _ in running.values():
                process.terminate()
            for process, _ in running.values():
                process.join(PATIENCE)
                process.kill()


def _main(job: StudyJob) -> None:
    os.setpgid(0, 0)  # Ctrl-C reaches only the study, which then terminates its runs
    parent = parent_process()
    assert parent is not None
    die_with(parent.sentinel)
    sys.exit(run_job(job))


def _failure(code: int | None, job: StudyJob) -> str | None:
    if code is not None and code < 0:
        why = ", possibly because memory ran out" if -code == signal.SIGKILL else ""
        return f"was killed by {signal.Signals(-code).name}{why}"
    return last_words(job) if code else None
