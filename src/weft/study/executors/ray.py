"""Executor that runs jobs on a Ray cluster, or on a local Ray instance started for the study."""

from collections.abc import Iterator, Sequence
from typing import Any

from weft.foundation.cluster import connected, last_line
from weft.study.executors.base import Ended, StudyExecutor
from weft.study.worker import StudyJob, last_words, run_job


class Ray(StudyExecutor):
    """Uses the cluster at RAY_ADDRESS, which needs access to the same folders; without it, starts Ray locally."""

    def run(self, jobs: Sequence[StudyJob]) -> Iterator[Ended]:
        with connected(cpus=self.jobs) as ray:
            # one process per run: a process that crashed or changed torch's threads is never reused
            kind = ray.remote(num_cpus=1, max_calls=1, max_retries=0)(run_job)
            waiting = list(jobs)
            running: dict[Any, StudyJob] = {}
            while waiting or running:
                while waiting and len(running) < self.jobs:
                    job = waiting.pop(0)
                    gpus = int(job.device.startswith("cuda"))
                    running[kind.options(num_gpus=gpus).remote(job)] = job
                (reference, *_), _ = ray.wait(list(running), num_returns=1)
                job = running.pop(reference)
                try:
                    failure = last_words(job) if ray.get(reference) else None
                except ray.exceptions.RayError as error:
                    failure = f"its worker died ({last_line(error)})"
                yield Ended(job, failure)
