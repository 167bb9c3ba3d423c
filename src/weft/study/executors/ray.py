"""Workers of a Ray cluster, or of a Ray that is started here for as long as the study runs."""

import os
from collections.abc import Iterator, Sequence

from weft.errors import UserError
from weft.study.executors.base import Ended, Executor
from weft.study.worker import Job, last_words, run_job


class Ray(Executor):
    """With RAY_ADDRESS set, the cluster there does the work, and must see the same folders; else Ray starts here."""

    def run(self, jobs: Sequence[Job]) -> Iterator[Ended]:
        try:
            import ray
        except ImportError:
            raise UserError('--executor ray: needs `pip install "weft[cluster]"`') from None
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # weft tells nobody what it does
        elsewhere = "RAY_ADDRESS" in os.environ
        ray.init(
            num_cpus=None if elsewhere else self.jobs,
            include_dashboard=None if elsewhere else False,
            log_to_driver=False,
            configure_logging=False,
        )
        # a process for each run: one that crashed, or changed torch's threads, is never used again
        task = ray.remote(num_cpus=1, max_calls=1, max_retries=0)(run_job)
        under_way = {task.remote(job): job for job in jobs}
        try:
            while under_way:
                (reference, *_), _ = ray.wait(list(under_way), num_returns=1)
                job = under_way.pop(reference)
                try:
                    failure = last_words(job) if ray.get(reference) else None
                except ray.exceptions.RayError as error:
                    failure = f"its worker died ({str(error).strip().splitlines()[0]})"
                yield Ended(job, failure)
        finally:
            ray.shutdown()
