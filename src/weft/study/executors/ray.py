"""Workers of a Ray cluster, or of a Ray that is started here for as long as the study runs."""

from collections.abc import Iterator, Sequence
from typing import Any

from weft.foundation.cluster import connected, last_line
from weft.study.executors.base import Ended, StudyExecutor
from weft.study.worker import StudyJob, last_words, run_job


class Ray(StudyExecutor):
    """With RAY_ADDRESS set, the cluster there does the work, and must see the same folders; else Ray starts here."""

    def run(self, jobs: Sequence[StudyJob]) -> Iterator[Ended]:
        with connected(cpus=self.jobs) as ray:
            # a process for each run: one that crashed, or changed torch's threads, is never used again
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
